//! The comparison: experiments on equal terms, metrics, reports
