"""Makes a release: archives that anybody can make again, licences, a bill of materials, checksums.

It stands beside the package, like the example pipelines: no installation has it.
"""
