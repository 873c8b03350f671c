import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** A file that pages load. */
export interface Asset {
  readonly path: string;
  /** With a mark of its content, so that browsers do not keep an older one. */
  readonly address: string;
  readonly contentType: string;
  readonly content: Buffer;
}

function asset(file: string, type: string): Asset {
  const content = readFileSync(new URL(`static/${file}`, import.meta.url));
  const mark = createHash('sha256').update(content).digest('hex').slice(0, 12);
  const path = `/${file}`;
  return { path, address: `${path}?${mark}`, contentType: `${type}; charset=utf-8`, content };
}

export const STYLE = asset('pages.css', 'text/css');
export const SCRIPT = asset('pages.js', 'text/javascript');
