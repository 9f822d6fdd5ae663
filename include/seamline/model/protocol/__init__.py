"""What commits mean: offsets, epochs, holes, the seam, the manifest, claims, proofs."""
