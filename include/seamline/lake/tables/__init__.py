"""The other tables of a pipeline: slices, generations, the manifest, control, claims, proofs."""
