"""crowd-kit's metrics: of labels (`data`) and of workers (`workers`)."""
