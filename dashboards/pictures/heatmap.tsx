// A heatmap, by hand: Grafana publishes no component of it.
import { formattedValueToString, getDisplayProcessor, type GrafanaTheme2 } from '@grafana/data';
import { useTheme2 } from '@grafana/ui';
import { interpolateOranges } from 'd3-scale-chromatic';

import { board, type Panel } from './frames';

const BELOW = 44;

// Cumulative buckets to buckets, the smallest first, as the data source does for the format `heatmap`.
function buckets(panel: Panel) {
  const cumulative = (panel.targets[0].result ?? [])
    .map(({ metric, values }) => ({
      bound: Number(metric.le.replace('Inf', 'Infinity')),
      counts: new Map(values!.map(([time, text]) => [time, Number(text)])),
    }))
    .sort((one, other) => one.bound - other.bound);
  return cumulative.map(({ bound, counts }, row) => ({
    bound,
    counts: [...counts].map(([time, count]) => [time, Math.max(0, count - (cumulative[row - 1]?.counts.get(time) ?? 0))]),
  }));
}

export function Heatmap({ panel, width, height }: { panel: Panel; width: number; height: number }) {
  const theme: GrafanaTheme2 = useTheme2();
  const LEFT = panel.options.yAxis.axisWidth ?? 62;
  const rows = buckets(panel);
  const least = panel.options.filterValues.le;
  const most = Math.max(...rows.flatMap((row) => row.counts.map(([, count]) => count)), 0);
  const inked = (share: number) => (theme.isDark ? 1 - share : share);
  const colour = (share: number) => interpolateOranges(inked(share ** panel.options.color.exponent));
  const unit = getDisplayProcessor({ field: { config: { unit: panel.options.yAxis.unit } }, theme });
  const text = (bound: number) => (Number.isFinite(bound) ? formattedValueToString(unit(bound)) : '+Inf');
  const [inner, tall] = [width - LEFT - 8, (height - BELOW - 8) / rows.length];
  const x = (time: number) => LEFT + ((time - board.from) / (board.to - board.from)) * inner;
  const cell = (board.step / (board.to - board.from)) * inner;
  const every = Math.ceil(14 / tall);
  const minutes = Array.from({ length: 6 }, (_, number) => board.from + number * 300);
  const label = { fontSize: 12, fill: theme.colors.text.primary };
  return (
    <svg width={width} height={height}>
      <defs>
        <linearGradient id="scale">
          {[0, 0.25, 0.5, 0.75, 1].map((share) => <stop key={share} offset={share} stopColor={colour(share)} />)}
        </linearGradient>
      </defs>
      {rows.flatMap((row, index) =>
        row.counts.filter(([, count]) => count > least).map(([time, count]) => (
          <rect key={`${index} ${time}`} x={x(time) - cell} y={8 + (rows.length - 1 - index) * tall}
            width={Math.max(1, cell - 1)} height={Math.max(1, tall - 1)} fill={colour(count / most)} />
        )),
      )}
      {rows.map((row, index) => index % every === 0 && (
        <text key={index} {...label} x={LEFT - 8} y={8 + (rows.length - 1 - index) * tall + 4} textAnchor="end">{text(row.bound)}</text>
      ))}
      {minutes.map((time) => (
        <text key={time} {...label} x={x(time)} y={height - BELOW + 16} textAnchor="middle">
          {new Date(time * 1000).toISOString().slice(11, 16)}
        </text>
      ))}
      <rect x={LEFT} y={height - 16} width={160} height={8} fill="url(#scale)" />
      <text {...label} x={LEFT - 8} y={height - 8} textAnchor="end">0</text>
      <text {...label} x={LEFT + 168} y={height - 8}>{formattedValueToString(getDisplayProcessor({ field: { config: { unit: 'short' } }, theme })(most))}</text>
    </svg>
  );
}
