//! Byte-pair encoding: model, naive and heap encoders, trainer
