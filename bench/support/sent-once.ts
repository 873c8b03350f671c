import { readFileSync, writeFileSync } from 'node:fs';

/** A request with its own body, such as a signed one. */
export interface SentOnce {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Writes requests to a file, from which the program `load` sends each once. */
export function writeSentOnce(file: string, requests: readonly SentOnce[]): void {
  writeFileSync(file, requests.map((request) => JSON.stringify(request)).join('\n'));
}

export const readSentOnce = (file: string): readonly SentOnce[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => JSON.parse(line) as SentOnce); // written by `writeSentOnce`
