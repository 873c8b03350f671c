import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Asset {
  readonly path: string;
  /** URL with a content hash, so that browsers do not use an outdated copy. */
  readonly address: string;
  readonly contentType: string;
  readonly content: Buffer;
}

const STATIC = path.join('api', 'web', 'pages', 'static');

/** Returns the folder of static files, next to the sources or at its place in the build. */
function staticFolder(above: string): string {
  const folder = path.join(above, STATIC);
  const parent = path.dirname(above);
  return existsSync(folder) || parent === above ? folder : staticFolder(parent);
}

const folder = staticFolder(path.dirname(fileURLToPath(import.meta.url)));

function asset(file: string, type: string): Asset {
  const content = readFileSync(path.join(folder, file));
  const mark = createHash('sha256').update(content).digest('hex').slice(0, 12);
  const route = `/${file}`;
  return {
    path: route,
    address: `${route}?${mark}`,
    contentType: type,
    content,
  };
}

export const STYLE = asset('pages.css', 'text/css; charset=utf-8');
export const SCRIPT = asset('pages.js', 'text/javascript; charset=utf-8');
export const ICON = asset('favicon.ico', 'image/x-icon');
