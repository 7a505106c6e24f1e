"""Compilation units."""
class CompilationUnit: pass
