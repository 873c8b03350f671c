import { readFileSync } from 'node:fs';
import type { ChatMessage } from '../../../src/ai/completion/completion.js';

/** The last request of a conversation that a real client held, without the client's long texts. */
export interface Recording {
  /** Name and version of the client. */
  readonly client: string;
  readonly request: {
    readonly messages: readonly ChatMessage[];
    readonly stream: true;
    readonly [setting: string]: unknown;
  };
}

/** The recordings, whose origin is in docs/testing.md. */
const NAMES = ['opencode', 'opencode-openrouter', 'openclaw'] as const;

export const recordingOf = (name: (typeof NAMES)[number]): Recording =>
  JSON.parse(readFileSync(new URL(`recordings/${name}.json`, import.meta.url), 'utf8'));

export const RECORDINGS: readonly Recording[] = NAMES.map(recordingOf);
