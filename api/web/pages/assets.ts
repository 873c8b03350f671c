import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Asset {
  readonly path: string;
  readonly operationId: string;
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

function asset(file: string, operationId: string, type: string): Asset {
  const content = readFileSync(path.join(folder, file));
  const mark = createHash('sha256').update(content).digest('hex').slice(0, 12);
  const route = `/${file}`;
  return {
    path: route,
    operationId,
    address: `${route}?${mark}`,
    contentType: type,
    content,
  };
}

export const STYLE = asset('pages.css', 'getStyle', 'text/css; charset=utf-8');
export const SCRIPT = asset('pages.js', 'getScript', 'text/javascript; charset=utf-8');
export const ICON = asset('favicon.ico', 'getIcon', 'image/x-icon');
