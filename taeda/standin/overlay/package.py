"""``torch.package``: refused, since its archives hold code."""

from taeda._refuse import refused_class, refused_function

_WHY = (
    "an archive with code in it is not read or written. "
    "Save a state_dict with taeda.save and ship the code as a package"
)
PackageExporter = refused_class("torch.package.PackageExporter", _WHY)
PackageImporter = refused_class("torch.package.PackageImporter", _WHY)
PackagingError = type("PackagingError", (Exception,), {"__doc__": "Never raised.", "__module__": "torch.package"})
is_from_package = refused_function("torch.package.is_from_package", _WHY)
