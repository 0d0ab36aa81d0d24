"""Speed, memory and FLOPs of training and generation (`tfstudy bench`). Importing this package imports no torch."""
