// The page: a dashboard's head, and its panels at their places.
import '@fontsource/inter/400.css';
import '@fontsource/inter/500.css';
import { getThemeById, ThemeContext } from '@grafana/data';
import { initPluginTranslations } from '@grafana/i18n';
import { GlobalStyles, Icon, PanelChrome } from '@grafana/ui';
import { createRoot } from 'react-dom/client';

import { board, type Panel } from './frames';
import { Inner } from './panels';

const [CELL, GAP, EDGE, HEAD] = [30, 8, 16, 88];
const theme = getThemeById(board.theme);
const column = (window.innerWidth - 2 * EDGE + GAP) / 24;

function Placed({ panel }: { panel: Panel }) {
  const { x, y, w, h } = panel.gridPos;
  const [width, height] = [w * column - GAP, h * (CELL + GAP) - GAP];
  const place = { position: 'absolute' as const, left: EDGE + x * column, top: HEAD + y * (CELL + GAP), width, height };
  return (
    <div style={place}>
      {panel.type === 'row' ? (
        <div style={{ display: 'flex', alignItems: 'center', height, gap: 8, fontSize: 16, fontWeight: 500 }}>
          <Icon name={panel.collapsed ? 'angle-right' : 'angle-down'} /> {panel.title}
        </div>
      ) : (
        <PanelChrome title={panel.title} description={panel.description} width={width} height={height}>
          {(width, height) => <Inner panel={panel} width={width} height={height} />}
        </PanelChrome>
      )}
    </div>
  );
}

const Head = () => (
  <div style={{ position: 'absolute', left: EDGE, top: 12 }}>
    <div style={{ fontSize: 20, fontWeight: 500 }}>{board.title}</div>
    <div style={{ display: 'flex', gap: 8, marginTop: 10 }}>
      {board.chosen.map(([label, value]) => (
        <div key={label} style={{ display: 'flex', border: `1px solid ${theme.colors.border.medium}`, borderRadius: 2, fontSize: 12 }}>
          <span style={{ padding: '4px 8px', background: theme.colors.background.secondary }}>{label}</span>
          <span style={{ padding: '4px 12px', background: theme.components.input.background }}>{value}</span>
        </div>
      ))}
    </div>
  </div>
);

function Page() {
  return (
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <Head />
      {board.panels.map((panel) => <Placed key={`${panel.type} ${panel.title}`} panel={panel} />)}
    </ThemeContext.Provider>
  );
}

await initPluginTranslations('grafana');
createRoot(document.getElementById('root')!).render(<Page />);
