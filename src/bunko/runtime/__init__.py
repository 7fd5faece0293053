"""What every part of a running program needs: progress, deadlines, timings, workers, files, packages and plugins."""
