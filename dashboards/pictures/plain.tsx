// Stands in for react-custom-scrollbars-2, which a bundle of modules cannot import: a picture scrolls nothing.
import type { ReactNode } from 'react';

const Plain = ({ children }: { children?: ReactNode }) => <div style={{ height: '100%', overflow: 'hidden' }}>{children}</div>;
export { Plain as Scrollbars };
export default Plain;
