"""What dbt is told of views: their serving tables as its sources."""
