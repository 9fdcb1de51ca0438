// Writes a PNG again with a palette of so many colours: shrink.mjs FROM TO COLOURS
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const UPNG = createRequire(`${process.env.NODE_PATH}/`)('upng-js');
const [from, to, colours] = process.argv.slice(2);
const image = UPNG.decode(readFileSync(from));
writeFileSync(to, Buffer.from(UPNG.encode(UPNG.toRGBA8(image), image.width, image.height, Number(colours))));
