"""Break a payload down into bytes by JSON path, tool and duplicate."""
