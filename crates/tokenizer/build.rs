//! Makes the images of the embedded encodings: their finished tables, to be read where they lie.

use std::path::Path;

use encodings::Ranks;

#[path = "src/ranked.rs"]
mod ranked;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/ranked.rs");
    println!("cargo::rustc-check-cfg=cfg(images)");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let is_wanted = std::env::var_os("CARGO_FEATURE_IMAGES").is_some();
    if !is_wanted
        || !is("CARGO_CFG_TARGET_ENDIAN", "little")
        || is("CARGO_CFG_TARGET_ARCH", "wasm32")
    {
        return;
    }
    let folder = std::env::var_os("OUT_DIR").expect("cargo names a folder");
    for &ranks in Ranks::ALL {
        let Some(image) = ranked::model(ranks).to_image() else {
            // Made on a machine whose numbers are big-endian.
            return;
        };
        let path = Path::new(&folder).join(ranks.name()).with_extension("image");
        std::fs::write(&path, image)
            .unwrap_or_else(|error| panic!("{} cannot be written: {error}", path.display()));
    }
    println!("cargo::rustc-cfg=images");
}
