import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { tryParseJson } from '../../src/lib/json.js';
import { StartFailure } from '../failure.js';
import { say } from '../report.js';

/** Milliseconds for an answer: an agent with a local model may think for two minutes. */
const TIMEOUT_MS = 180_000;

/** Milliseconds between two polls, and of polling in total. */
const POLL_MS = 1_000;
const POLLED_MS = 5 * 60_000;

/** Lines of an answer that are shown. */
const SHOWN_LINES = 60;

/** An HTTP request. */
export interface TourRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Local address from which the request is sent; chosen by the system by default. */
  readonly from?: string;
}

/** The answer to a request. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The parsed body; undefined if it is not JSON. */
  readonly body: unknown;
}

/** Sends requests, and shows them as shell commands with their answers. */
export class Terminal {
  /** Shell variables that hold secrets, by their values: secrets are not shown on the screen. */
  readonly #variables = new Map<string, string>();

  /** Shows the value as its shell variable from now on. */
  hide(variable: string, value: string): void {
    this.#variables.set(value, variable);
  }

  heading(line: string): void {
    say(`\n# ${line}`);
  }

  /** Shows a request, sends it, and shows the answer. @throws StartFailure unless the answer is a success. */
  async ask(asked: TourRequest): Promise<Answer> {
    return requireSuccess(await this.askAnyway(asked));
  }

  /** Works like `ask`, but accepts every answer. */
  async askAnyway(asked: TourRequest): Promise<Answer> {
    const answer = await this.#send(asked);
    this.#show(answer);
    return answer;
  }

  /** Works like `ask`, but returns undefined, without showing the answer, for one error status. */
  async askUnless(status: number, asked: TourRequest): Promise<Answer | undefined> {
    const answer = await this.#send(asked);
    if (answer.status === status) return undefined;
    this.#show(answer);
    return requireSuccess(answer);
  }

  /** Shows an earlier request with its answer. */
  show(asked: TourRequest, answer: Answer): void {
    say(`\n${this.#curlOf(asked)}`);
    this.#show(answer);
  }

  /**
   * Shows a request, and repeats it until its answer is the expected one.
   *
   * @param isThere throws if the expected answer can no longer come.
   */
  async until(asked: TourRequest, isThere: (body: unknown) => boolean): Promise<Answer> {
    say(`\n${this.#curlOf(asked)}   # until it has succeeded`);
    const deadline = performance.now() + POLLED_MS;
    for (;;) {
      const answer = await send(asked);
      const isOver = answer.status >= 300 || performance.now() > deadline;
      if (isOver || isThere(answer.body)) this.#show(answer);
      if (isOver) {
        const reason =
          answer.status >= 300 ? 'the answer is an error' : 'the answer arrived too late';
        throw new StartFailure(`The tour ends here: ${reason}.`);
      }
      if (isThere(answer.body)) return answer;
      await delay(POLL_MS);
    }
  }

  #send(asked: TourRequest): Promise<Answer> {
    say(`\n${this.#curlOf(asked)}`);
    return send(asked);
  }

  #show({ body, status }: Answer): void {
    const lines = this.#hidden(JSON.stringify(body, undefined, 2) ?? '').split('\n');
    say(`${status} ${lines.slice(0, SHOWN_LINES).join('\n')}`);
    const left = lines.length - SHOWN_LINES;
    if (left > 0) say(`… and ${left} more lines`);
  }

  #curlOf({ body, from, headers = {}, method, url }: TourRequest): string {
    const words = Object.entries(headers).map(
      ([name, value]) => `-H ${quoted(`${name}: ${value}`)}`,
    );
    if (body !== undefined) {
      words.push(
        `-H ${quoted('content-type: application/json')}`,
        `-d ${quoted(JSON.stringify(body))}`,
      );
    }
    const verb = method === (body === undefined ? 'GET' : 'POST') ? [] : [`-X ${method}`];
    const by = from === undefined ? [] : [`--interface ${from}`];
    const line = ['curl -sS', ...by, ...verb, quoted(url), ...words].join(' ');
    return this.#hidden(line, `'"$`, `"'`).replaceAll(`"''`, '"');
  }

  #hidden(line: string, before = '$', after = ''): string {
    const hide = (shown: string, [value, name]: [string, string]) =>
      shown.replaceAll(value, `${before}${name}${after}`);
    return [...this.#variables].reduce(hide, line);
  }
}

function requireSuccess(answer: Answer): Answer {
  if (answer.status < 300) return answer;
  throw new StartFailure('The tour ends here: the answer is an error.');
}

/** Quotes a word for the shell. */
const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/** Sends a request, and shows nothing. */
export async function send({ body, from, headers, method, url }: TourRequest): Promise<Answer> {
  const request = new URL(url).protocol === 'https:' ? httpsRequest : httpRequest;
  const sent = request(url, {
    method,
    headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
    signal: AbortSignal.timeout(TIMEOUT_MS),
    ...(from !== undefined && { localAddress: from }),
  });
  return new Promise((resolve, reject) => {
    sent.once('error', (cause) => {
      const { origin } = new URL(url);
      reject(new StartFailure(`${origin} does not answer: is the platform running?`, { cause }));
    });
    sent.once('response', (answer) => {
      text(answer)
        .then((said) =>
          resolve({
            status: answer.statusCode ?? 0,
            headers: answer.headers,
            body: tryParseJson(said),
          }),
        )
        .catch(reject);
    });
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
