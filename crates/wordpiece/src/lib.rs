//! WordPiece: PMI trainer and MaxMatch encoders
