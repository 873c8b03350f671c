import { Parser } from 'htmlparser2';
import { sanitizeForJsonb } from '../lib/well-formed.js';

/** Longest title of what is playing, in characters. */
const MAX_TITLE = 200;

/** A source that is connected to Icecast. */
export interface Source {
  readonly mount: string;
  readonly contentType: string;
  readonly listeners: number;
  /** The most listeners since the source has connected. */
  readonly peakListeners: number;
  /** The title that the source has sent; null without one. */
  readonly title: string | null;
  readonly startedAt: Date;
  /** Bytes received from the source, which Icecast counts about every five seconds. */
  readonly bytes: number;
}

/** Reads the sources in an answer of `/admin/stats`. @returns undefined for another document or a part of one. */
export function readStats(xml: string): Source[] | undefined {
  const sources: Source[] = [];
  let path: string[] = [];
  let mount: string | undefined;
  let fields = new Map<string, string>();
  let isWhole = false;
  const parser = new Parser(
    {
      onopentag(name, { mount: named }) {
        path.push(name);
        if (path.length === 2 && name === 'source') {
          mount = named;
          fields = new Map();
        }
      },
      ontext(text) {
        const [root, parent, field] = path;
        if (root !== 'icestats' || parent !== 'source' || field === undefined) return;
        fields.set(field, (fields.get(field) ?? '') + text);
      },
      onclosetag(name, isImplied) {
        path = path.slice(0, -1);
        if (isImplied) return;
        if (path.length === 0) isWhole = name === 'icestats';
        else if (path.length === 1 && name === 'source' && mount !== undefined) {
          sources.push(sourceOf(mount, fields));
        }
      },
    },
    { xmlMode: true, decodeEntities: true },
  );
  parser.end(xml);
  return isWhole ? sources : undefined;
}

function sourceOf(mount: string, fields: ReadonlyMap<string, string>): Source {
  const number = (name: string) => Math.max(0, Math.trunc(Number(fields.get(name)))) || 0;
  const startedAt = new Date(fields.get('stream_start_iso8601') ?? NaN);
  return {
    mount,
    contentType: (fields.get('server_type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '',
    listeners: number('listeners'),
    peakListeners: number('listener_peak'),
    title: titleOf(fields.get('title') ?? ''),
    startedAt: Number.isNaN(startedAt.getTime()) ? new Date(0) : startedAt,
    bytes: number('total_bytes_read'),
  };
}

/** Returns a title without line breaks and other control characters, or null. */
function titleOf(sent: string): string | null {
  const text = sanitizeForJsonb(sent)
    .replace(/\p{Cc}+/gu, ' ')
    .trim();
  return [...text].slice(0, MAX_TITLE).join('') || null;
}
