// Draws one panel each, as the plugins of Grafana's core do with the same components.
import {
  getDisplayValueAlignmentFactors, getFieldDisplayValues, VizOrientation,
  type DataFrame, type FieldDisplay, type GrafanaTheme2,
} from '@grafana/data';
import { BarGauge, BigValue, TimeSeries, useTheme2, VizRepeater } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { useEffect, useState } from 'react';

import { graph, table, timeRange, type Panel } from './frames';
import { Heatmap } from './heatmap';

type Drawn = { panel: Panel; width: number; height: number };

export function Inner(drawn: Drawn) {
  const Type = { stat: Stat, bargauge: Bars, timeseries: Graph, table: Table, heatmap: Heatmap }[drawn.panel.type];
  return Type ? <Type {...drawn} /> : <Note text={`no picture of panels of type ${drawn.panel.type}`} />;
}

export const Note = ({ text }: { text: string }) => (
  <div style={{ height: '100%', display: 'grid', placeItems: 'center' }}>{text}</div>
);

const nothing = (panel: Panel) => panel.fieldConfig.defaults.noValue ?? 'No data';

function displayed(panel: Panel, theme: GrafanaTheme2): FieldDisplay[] {
  const { fieldConfig, options } = panel;
  return getFieldDisplayValues({
    fieldConfig, reduceOptions: options.reduceOptions, replaceVariables: (text) => text, theme, timeZone: 'utc',
    data: graph(panel, theme),
  });
}

function Stat({ panel, width, height }: Drawn) {
  const theme = useTheme2();
  const { options } = panel;
  const [{ display }] = displayed(panel, theme);
  return (
    <BigValue value={display} width={width} height={height} theme={theme} colorMode={options.colorMode}
      text={options.text} graphMode={options.graphMode} textMode={options.textMode} justifyMode={options.justifyMode} />
  );
}

function Bars({ panel, width, height }: Drawn) {
  const theme = useTheme2();
  const { options } = panel;
  const manual = options.sizing === 'manual';
  return (
    <VizRepeater
      source={panel} renderCounter={0} width={width} height={height} orientation={VizOrientation.Horizontal}
      itemSpacing={8} minVizHeight={manual ? options.minVizHeight : 16} maxVizHeight={manual ? options.maxVizHeight : 300}
      getValues={() => displayed(panel, theme)}
      getAlignmentFactors={(values) => getDisplayValueAlignmentFactors(values as FieldDisplay[])}
      renderValue={({ value, alignmentFactors, width, height, count, orientation }: any) => (
        <BarGauge
          value={value.display} field={value.field} display={value.view?.getFieldDisplayProcessor(value.colIndex)}
          alignmentFactors={count > 1 ? alignmentFactors : undefined} width={width} height={height} theme={theme}
          orientation={orientation} itemSpacing={8} displayMode={options.displayMode} showUnfilled={options.showUnfilled}
          valueDisplayMode={options.valueMode} text={options.text} namePlacement={options.namePlacement ?? 'auto'}
        />
      )}
    />
  );
}

function Graph({ panel, width, height }: Drawn) {
  const frames = graph(panel, useTheme2());
  if (!frames.length) {
    return <Note text={nothing(panel)} />;
  }
  return (
    <TimeSeries frames={frames} timeRange={timeRange} timeZone="utc" legend={panel.options.legend} width={width} height={height} />
  );
}

function Table({ panel, width, height }: Drawn) {
  const theme = useTheme2();
  const [frame, setFrame] = useState<DataFrame>();
  useEffect(() => void table(panel, theme).then(setFrame), [panel, theme]);
  return frame ? (
    <TableNG data={frame} width={width} height={height} cellHeight={panel.options.cellHeight} sortBy={panel.options.sortBy}
      enableVirtualization={false} timeRange={timeRange} />
  ) : <Note text={nothing(panel)} />;
}
