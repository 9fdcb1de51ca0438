// Makes Grafana's data frames of what Prometheus answers, configured as a panel says.
import {
  applyFieldOverrides, cacheFieldDisplayNames, dateTime, FieldConfigOptionsRegistry, FieldType, standardTransformers,
  standardTransformersRegistry, transformDataFrame,
  type DataFrame, type Field, type GrafanaTheme2, type TimeRange,
} from '@grafana/data';
import { lastValueFrom } from 'rxjs';

type Series = { metric: Record<string, string>; value?: [number, string]; values?: [number, string][] };
export type Target = { refId: string; legendFormat?: string; format?: string; interval?: string; result?: Series[] };
export type Panel = {
  type: string; title: string; description?: string; options: any; targets: Target[]; transformations?: any[];
  fieldConfig: { defaults: any; overrides: any[] };
  gridPos: { x: number; y: number; w: number; h: number }; collapsed?: boolean;
};
export type Board = { title: string; from: number; to: number; step: number; theme: string; window: number; chosen: [string, string][]; panels: Panel[] };

export const board: Board = (window as any).board;
const [from, to] = [dateTime(board.from * 1000), dateTime(board.to * 1000)];
export const timeRange: TimeRange = { from, to, raw: { from, to } };

standardTransformersRegistry.setInit(() =>
  [standardTransformers.mergeTransformer, standardTransformers.organizeFieldsTransformer].map(
    (transformation) => ({ id: transformation.id, name: transformation.id, transformation: async () => transformation }) as any,
  ),
);

// What Grafana's panels understand; their own definitions are not published.
const GRAPH = {
  drawStyle: 'line', lineInterpolation: 'linear', lineWidth: 1, lineStyle: undefined, fillOpacity: 0, gradientMode: 'none',
  showPoints: 'auto', pointSize: 5, barAlignment: 0, barWidthFactor: 0.6, spanNulls: false, axisPlacement: 'auto',
  axisGridShow: true, stacking: { mode: 'none', group: 'A' }, scaleDistribution: { type: 'linear' },
  thresholdsStyle: { mode: 'off' }, hideFrom: { viz: false, legend: false, tooltip: false },
};
const TABLE = { cellOptions: { type: 'auto' }, align: 'auto', filterable: false, inspect: false, width: undefined, minWidth: undefined };
const PLAIN = ['unit', 'min', 'max', 'decimals', 'displayName', 'noValue', 'color', 'thresholds', 'mappings', 'links'];

const withBase = (value: any) =>
  value && { ...value, steps: value.steps.map((one: any) => ({ ...one, value: one.value ?? -Infinity })) };

const registry = new FieldConfigOptionsRegistry(() =>
  [...PLAIN, ...[...Object.keys(GRAPH), ...Object.keys(TABLE)].map((key) => `custom.${key}`)].map((id) => ({
    id, name: id, path: id.replace('custom.', ''), isCustom: id.startsWith('custom.'),
    process: id === 'thresholds' ? withBase : (value: any) => value, shouldApply: () => true,
  }) as any),
);

function configured(frames: DataFrame[], panel: Panel, theme: GrafanaTheme2): DataFrame[] {
  const custom = { ...(panel.type === 'table' ? TABLE : GRAPH), ...panel.fieldConfig.defaults.custom };
  // The name of a lone bar is the legend of its query, which each field has.
  const fieldConfig = { ...panel.fieldConfig, defaults: { ...panel.fieldConfig.defaults, displayName: undefined, custom } };
  return applyFieldOverrides({
    data: frames, fieldConfig, theme, timeZone: 'utc', fieldConfigRegistry: registry, replaceVariables: (text) => text,
  });
}

const number = (text: string) => (Number.isFinite(Number(text)) ? Number(text) : null);

function legend(target: Target, labels: Record<string, string>): string {
  const text = target.legendFormat;
  if (text && text !== '__auto') {
    return text.replace(/{{\s*(\w+)\s*}}/g, (_, name) => labels[name] ?? '');
  }
  const { __name__ = '', ...others } = labels;
  const pairs = Object.entries(others).map(([name, value]) => `${name}="${value}"`);
  return pairs.length ? `${__name__}{${pairs.join(', ')}}` : __name__ || 'Value';
}

function series(target: Target, bars: boolean): DataFrame[] {
  return (target.result ?? []).map(({ metric, value, values }) => {
    const points = values ?? [value!];
    const name = legend(target, metric);
    const named = { displayNameFromDS: name, displayName: bars && target.legendFormat ? name : undefined };
    const fields: Field[] = [
      { name: 'Time', type: FieldType.time, config: { interval: (target.interval ? board.window : board.step) * 1000 }, values: points.map((one) => one[0] * 1000) },
      { name: 'Value', type: FieldType.number, labels: metric, config: named, values: points.map((one) => number(one[1])) },
    ];
    return { refId: target.refId, fields, length: points.length };
  });
}

export function graph(panel: Panel, theme: GrafanaTheme2): DataFrame[] {
  return configured(panel.targets.flatMap((target) => series(target, panel.type === 'bargauge')), panel, theme);
}

export async function table(panel: Panel, theme: GrafanaTheme2): Promise<DataFrame | undefined> {
  const frames = panel.targets.map((target): DataFrame => {
    const rows = target.result ?? [];
    const keys = [...new Set(rows.flatMap((row) => Object.keys(row.metric)))].filter((key) => key !== '__name__').sort();
    const value = panel.targets.length > 1 ? `Value #${target.refId}` : 'Value';
    const fields: Field[] = [
      { name: 'Time', type: FieldType.time, config: {}, values: rows.map((row) => row.value![0] * 1000) },
      ...keys.map((key) => ({ name: key, type: FieldType.string, config: {}, values: rows.map((row) => row.metric[key] ?? '') })),
      { name: value, type: FieldType.number, config: {}, values: rows.map((row) => number(row.value![1])) },
    ];
    return { refId: target.refId, fields, length: rows.length };
  });
  const [one] = await lastValueFrom(transformDataFrame(panel.transformations ?? [], frames.filter((frame) => frame.length)));
  const made = one ? configured([one], panel, theme) : [];
  cacheFieldDisplayNames(made);
  return made[0];
}
