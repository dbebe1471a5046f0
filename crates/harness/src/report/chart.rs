//! A small writer of SVG charts: lines over a logarithmic axis, dots in rows, horizontal bars.
//!
//! Colours are CSS classes (`s0`, `s1`, ..), so that a page decides them for light and dark;
//! every series has a marker of its own as well, so that colour is never the only difference.

use std::fmt::Write as _;

/// A point of a series.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) interval: Option<[f64; 2]>,
}

/// A series.
pub(super) struct Series {
    pub(super) name: String,
    /// Colour and marker.
    pub(super) slot: usize,
    pub(super) muted: bool,
    pub(super) points: Vec<Point>,
}

/// What every chart has.
pub(super) struct Frame<'f> {
    /// Unique in the page.
    pub(super) id: &'f str,
    /// Read out, not drawn: the page has captions.
    pub(super) title: &'f str,
    pub(super) description: &'f str,
    /// In units of about one CSS pixel.
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Text that may stand in HTML and SVG, between tags and in attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Not allowed in HTML at all.
            '\0' => out.push('\u{FFFD}'),
            _ => out.push(c),
        }
    }
    out
}

/// Round values from about `low` to about `high`, at most `most` of them and at least two.
pub(super) fn ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let span = (high - low).max(1e-9);
    let rough = span / most.max(2) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| span / step <= most as f64)
        .unwrap_or(10.0 * power);
    let first = (low / step + 1e-9).floor() as i64;
    let last = (high / step - 1e-9).ceil() as i64;
    (first..=last.max(first + 1)).map(|i| i as f64 * step).collect()
}

fn tick_text(value: f64, step: f64) -> String {
    let decimals = if step >= 1.0 - 1e-9 {
        0
    } else if step >= 0.1 - 1e-9 && ((step * 10.0).round() - step * 10.0).abs() < 1e-6 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}

/// The space that text takes, for layout: an estimate, generous for the system fonts.
fn text_width(text: &str, size: f64) -> f64 {
    let ems: f64 = text.chars().map(|c| if c.is_ascii() { 0.56 } else { 0.8 }).sum();
    ems * size
}

fn open(frame: &Frame<'_>, class: &str) -> String {
    let Frame { id, title, description, width, height } = frame;
    format!(
        "<svg class=\"chart {class}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}\
         </desc>",
        escape(title),
        escape(description)
    )
}

/// The marker of a slot, centred.
fn marker(svg: &mut String, slot: usize, x: f64, y: f64) {
    let r = 4.0;
    let _ = match slot % 8 {
        0 => write!(svg, "<circle class=\"m s{slot}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\"/>"),
        1 => write!(
            svg,
            "<rect class=\"m s{slot}\" x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\"/>",
            x - 3.5,
            y - 3.5
        ),
        2 => {
            write!(svg, "<path class=\"m s{slot}\" d=\"M{:.1} {:.1}l4.8 8.4h-9.6z\"/>", x, y - 5.4)
        }
        3 => write!(
            svg,
            "<path class=\"m s{slot}\" d=\"M{:.1} {:.1}l4.8 4.8l-4.8 4.8l-4.8 -4.8z\"/>",
            x,
            y - 4.8
        ),
        4 => {
            write!(svg, "<path class=\"m s{slot}\" d=\"M{:.1} {:.1}l4.8 -8.4h-9.6z\"/>", x, y + 5.4)
        }
        5 => write!(
            svg,
            "<path class=\"m o s{slot}\" d=\"M{:.1} {:.1}l7 7m0 -7l-7 7\"/>",
            x - 3.5,
            y - 3.5
        ),
        6 => write!(svg, "<path class=\"m o s{slot}\" d=\"M{:.1} {y:.1}h8m-4 -4v8\"/>", x - 4.0),
        _ => write!(svg, "<circle class=\"m o s{slot}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>"),
    };
}

/// Moves labels apart so that each has `gap`, keeping their order and staying in `low..high`
/// where there is room.
fn spread(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut placed = wanted.to_vec();
    let mut free = low;
    for &i in &order {
        placed[i] = placed[i].max(free);
        free = placed[i] + gap;
    }
    let mut free = high;
    for &i in order.iter().rev() {
        placed[i] = placed[i].min(free);
        free = placed[i] - gap;
    }
    placed
}

/// Lines over a logarithmic x axis with a tick at each of `x_ticks`, labelled at their ends.
pub(super) fn lines(
    frame: &Frame<'_>,
    y_label: &str,
    x_label: &str,
    x_ticks: &[(f64, String)],
    series: &[Series],
) -> String {
    let mut svg = open(frame, "lines");
    let small = frame.width < 300.0;
    let points = || series.iter().flat_map(|s| &s.points);
    let high = points().map(|p| p.interval.map_or(p.y, |i| i[1].max(p.y))).fold(0.0, f64::max);
    let low = points().map(|p| p.y).fold(f64::INFINITY, f64::min).min(high);
    let floor = if low < high * 0.6 { 0.0 } else { low };
    let y_ticks = ticks(floor, high.max(floor + 1e-6), if small { 4 } else { 6 });
    let (y0, y1) = (y_ticks[0], y_ticks[y_ticks.len() - 1]);
    // A small chart leaves the names to a legend beside it.
    let named = !small;
    let names = series.iter().map(|s| text_width(&s.name, 12.5)).fold(0.0, f64::max);
    let label_width = if named { names.min(frame.width * 0.36) } else { -8.0 };
    let (left, right) = (34.0, frame.width - label_width - 16.0);
    let (top, bottom) = (26.0, frame.height - 40.0);
    let first = x_ticks.first().map_or(1.0, |t| t.0).ln();
    let last = x_ticks.last().map_or(2.0, |t| t.0).ln();
    let x = |value: f64| {
        if last > first {
            left + 8.0 + (value.ln() - first) / (last - first) * (right - left - 16.0)
        } else {
            (left + right) / 2.0
        }
    };
    let y = |value: f64| bottom - (value - y0) / (y1 - y0) * (bottom - top);
    let step = y_ticks[1] - y_ticks[0];
    for &tick in &y_ticks {
        let at = y(tick);
        let class = if tick == y0 { "axis" } else { "grid" };
        let _ = write!(
            svg,
            "<path class=\"{class}\" d=\"M{left:.1} {at:.1}H{right:.1}\"/><text class=\"tick\" \
             x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 7.0,
            at + 4.0,
            tick_text(tick, step)
        );
    }
    let mut free = f64::NEG_INFINITY;
    for (value, label) in x_ticks {
        let at = x(*value);
        let half = text_width(label, 12.0) / 2.0;
        let _ = write!(svg, "<path class=\"axis\" d=\"M{at:.1} {bottom:.1}v4\"/>");
        if at - half > free {
            let _ = write!(
                svg,
                "<text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 18.0,
                escape(label)
            );
            free = at + half + 6.0;
        }
    }
    let _ = write!(
        svg,
        "<text class=\"label\" x=\"0\" y=\"11\">{}</text><text class=\"label\" x=\"{right:.1}\" \
         y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        escape(y_label),
        bottom + 35.0,
        escape(x_label)
    );
    let ends: Vec<f64> = series.iter().map(|s| s.points.last().map_or(0.0, |p| y(p.y))).collect();
    let labels = spread(&ends, 15.0, top, bottom - 2.0);
    // The contenders are drawn last, on top.
    let mut order: Vec<usize> = (0..series.len()).collect();
    order.sort_by_key(|&i| !series[i].muted);
    for i in order {
        let Series { name, slot, muted, points } = &series[i];
        let Some(end) = points.last() else { continue };
        let class = if *muted { "line muted" } else { "line" };
        let mut path = String::new();
        for (k, point) in points.iter().enumerate() {
            let letter = if k == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{letter}{:.1} {:.1}", x(point.x), y(point.y));
        }
        let _ = write!(svg, "<g><title>{}</title>", escape(name));
        for point in points {
            if let Some([low, high]) = point.interval {
                let _ = write!(
                    svg,
                    "<path class=\"whisker s{slot}\" d=\"M{:.1} {:.1}V{:.1}\"/>",
                    x(point.x),
                    y(low),
                    y(high)
                );
            }
        }
        let _ = write!(svg, "<path class=\"{class} s{slot}\" d=\"{path}\"/>");
        for point in points {
            marker(&mut svg, *slot, x(point.x), y(point.y));
        }
        if !named {
            svg.push_str("</g>");
            continue;
        }
        if (labels[i] - ends[i]).abs() > 3.0 {
            let _ = write!(
                svg,
                "<path class=\"leader\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>",
                x(end.x) + 7.0,
                ends[i],
                right + 4.0,
                labels[i]
            );
        }
        let _ = write!(
            svg,
            "<text class=\"name s{slot}\" x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
            right + 7.0,
            labels[i] + 4.0,
            escape(name)
        );
    }
    svg.push_str("</svg>");
    svg
}

/// A row of a dot chart.
pub(super) struct DotRow {
    pub(super) name: String,
    /// Slot, value, interval.
    pub(super) dots: Vec<(usize, f64, Option<[f64; 2]>)>,
}

/// Dots in rows over a linear axis, with a rule at `reference`. `legend` names the slots.
pub(super) fn dots(
    frame: &Frame<'_>,
    x_label: &str,
    reference: f64,
    legend: &[(usize, String)],
    rows: &[DotRow],
) -> String {
    let most = rows.iter().map(|row| row.dots.len()).max().unwrap_or(1) as f64;
    let (row_height, apart) = (12.0 + 5.5 * most, 5.5);
    let (top, bottom) = (40.0, 40.0 + row_height * rows.len() as f64);
    let frame = Frame { height: bottom + 40.0, ..*frame };
    let mut svg = open(&frame, "dots");
    let values = || rows.iter().flat_map(|row| &row.dots);
    let high = values().map(|d| d.2.map_or(d.1, |i| i[1].max(d.1))).fold(reference, f64::max);
    let low = values().map(|d| d.2.map_or(d.1, |i| i[0].min(d.1))).fold(reference, f64::min);
    let x_ticks = ticks(low, high, if frame.width < 500.0 { 5 } else { 8 });
    let (x0, x1) = (x_ticks[0], x_ticks[x_ticks.len() - 1]);
    let names = rows.iter().map(|row| text_width(&row.name, 13.0)).fold(40.0, f64::max);
    let (left, right) = (names + 10.0, frame.width - 8.0);
    let x = |value: f64| left + (value - x0) / (x1 - x0) * (right - left);
    let mut at = left;
    for (slot, name) in legend {
        marker(&mut svg, *slot, at + 5.0, 10.0);
        let _ = write!(
            svg,
            "<text class=\"name s{slot}\" x=\"{:.1}\" y=\"14\">{}</text>",
            at + 15.0,
            escape(name)
        );
        at += 15.0 + text_width(name, 13.0) + 18.0;
    }
    let step = x_ticks[1] - x_ticks[0];
    for &tick in &x_ticks {
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{0:.1} {top:.1}V{bottom:.1}\"/><text class=\"tick\" \
             x=\"{0:.1}\" y=\"{1:.1}\" text-anchor=\"middle\">{2}</text>",
            x(tick),
            bottom + 17.0,
            tick_text(tick, step)
        );
    }
    let _ = write!(
        svg,
        "<path class=\"reference\" d=\"M{:.1} {:.1}V{bottom:.1}\"/><text class=\"label\" \
         x=\"{right:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        x(reference),
        top - 6.0,
        bottom + 34.0,
        escape(x_label)
    );
    for (i, row) in rows.iter().enumerate() {
        let middle = top + row_height * (i as f64 + 0.5);
        let _ = write!(
            svg,
            "<g><text class=\"row\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <path class=\"rule\" d=\"M{left:.1} {middle:.1}H{right:.1}\"/>",
            left - 10.0,
            middle + 4.0,
            escape(&row.name)
        );
        let n = row.dots.len() as f64;
        for (k, &(slot, value, interval)) in row.dots.iter().enumerate() {
            let at = middle + (k as f64 - (n - 1.0) / 2.0) * apart;
            if let Some([low, high]) = interval {
                let _ = write!(
                    svg,
                    "<path class=\"whisker s{slot}\" d=\"M{:.1} {at:.1}H{:.1}\"/>",
                    x(low),
                    x(high)
                );
            }
            marker(&mut svg, slot, x(value), at);
        }
        svg.push_str("</g>");
    }
    svg.push_str("</svg>");
    svg
}

/// A bar.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) slot: usize,
    pub(super) muted: bool,
    pub(super) value: f64,
    pub(super) range: Option<[f64; 2]>,
    /// Printed behind the bar.
    pub(super) text: String,
}

/// The marker of a slot by itself.
pub(super) fn mark(slot: usize) -> String {
    let mut svg =
        String::from("<svg class=\"chart mark\" viewBox=\"1 1 10 10\" aria-hidden=\"true\">");
    marker(&mut svg, slot, 6.0, 6.0);
    svg.push_str("</svg>");
    svg
}

/// Horizontal bars in groups, from zero.
pub(super) fn bars(frame: &Frame<'_>, x_label: &str, groups: &[(String, Vec<Bar>)]) -> String {
    let (bar, gap, head) = (20.0, 16.0, 22.0);
    let named = groups.len() > 1;
    let rows: f64 = groups
        .iter()
        .map(|(_, bars)| bars.len() as f64 * bar + gap + if named { head } else { 0.0 })
        .sum();
    let frame = Frame { height: rows + 22.0, ..*frame };
    let mut svg = open(&frame, "bars");
    let all = || groups.iter().flat_map(|group| &group.1);
    let high = all().map(|b| b.range.map_or(b.value, |r| r[1].max(b.value))).fold(0.0, f64::max);
    let names = all().map(|b| text_width(&b.name, 13.0)).fold(40.0, f64::max);
    let texts = all().map(|b| text_width(&b.text, 12.0)).fold(20.0, f64::max);
    let (left, right) = (names + 8.0, frame.width - texts - 14.0);
    let x = |value: f64| left + if high > 0.0 { value / high * (right - left) } else { 0.0 };
    let mut y = 4.0;
    for (name, bars) in groups {
        if named {
            let _ = write!(
                svg,
                "<text class=\"group\" x=\"{left:.1}\" y=\"{:.1}\">{}</text>",
                y + 14.0,
                escape(name)
            );
            y += head;
        }
        let _ = write!(
            svg,
            "<path class=\"axis\" d=\"M{left:.1} {:.1}v{:.1}\"/>",
            y - 2.0,
            bars.len() as f64 * bar + 2.0
        );
        for Bar { name, slot, muted, value, range, text } in bars {
            let class = if *muted { "bar muted" } else { "bar" };
            let middle = y + bar / 2.0;
            let _ = write!(
                svg,
                "<g><text class=\"row\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
                 <rect class=\"{class} s{slot}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" \
                 height=\"{:.1}\"/>",
                left - 8.0,
                middle + 4.0,
                escape(name),
                y + 3.0,
                (x(*value) - left).max(0.5),
                bar - 6.0
            );
            if let Some([low, high]) = range {
                let _ = write!(
                    svg,
                    "<path class=\"range\" d=\"M{0:.1} {2:.1}H{1:.1}M{0:.1} {3:.1}v6M{1:.1} \
                     {3:.1}v6\"/>",
                    x(*low),
                    x(*high),
                    middle,
                    middle - 3.0
                );
            }
            let end = range.map_or(*value, |r| r[1].max(*value));
            let _ = write!(
                svg,
                "<text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
                x(end) + 7.0,
                middle + 4.0,
                escape(text)
            );
            y += bar;
        }
        y += gap;
    }
    let _ = write!(
        svg,
        "<text class=\"label\" x=\"{left:.1}\" y=\"{:.1}\">{}</text></svg>",
        y + 4.0,
        escape(x_label)
    );
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        for (low, high, most) in
            [(0.0, 4.7, 6), (0.93, 1.31, 5), (0.0, 0.004, 4), (1.0, 1.0, 5), (0.0, 12345.0, 8)]
        {
            let ticks = ticks(low, high, most);
            assert!(ticks.len() >= 2 && ticks.len() <= most + 2, "{ticks:?}");
            assert!(ticks[0] <= low && *ticks.last().unwrap() >= high - 1e-9, "{ticks:?}");
        }
        assert_eq!(ticks(0.0, 4.7, 6), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn labels_do_not_overlap() {
        let placed = spread(&[10.0, 11.0, 12.0, 90.0], 15.0, 0.0, 100.0);
        for pair in placed.windows(2) {
            assert!(pair[1] - pair[0] >= 15.0 - 1e-9, "{placed:?}");
        }
        let placed = spread(&[98.0, 99.0, 97.0], 15.0, 0.0, 100.0);
        assert_eq!(placed, [85.0, 100.0, 70.0]);
    }

    #[test]
    fn markup_in_names_is_escaped() {
        assert_eq!(escape("<b>&\"'\0"), "&lt;b&gt;&amp;&quot;&#39;\u{FFFD}");
        let frame = Frame { id: "x", title: "<t>", description: "&", width: 300.0, height: 200.0 };
        let series = Series {
            name: "<i>".into(),
            slot: 0,
            muted: false,
            points: vec![Point { x: 1000.0, y: 2.0, interval: Some([1.5, 2.5]) }],
        };
        let svg = lines(&frame, "y", "x", &[(1000.0, "1k".into())], &[series]);
        assert!(!svg.contains("<i>") && !svg.contains("<t>"), "{svg}");
        assert!(!svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn empty_charts_are_still_well_formed() {
        let frame = Frame { id: "x", title: "t", description: "d", width: 300.0, height: 200.0 };
        for svg in [
            lines(&frame, "y", "x", &[], &[]),
            dots(&frame, "x", 1.0, &[], &[]),
            bars(&frame, "x", &[]),
        ] {
            assert!(svg.ends_with("</svg>") && !svg.contains("NaN"), "{svg}");
        }
    }
}
