import { isObject, tryParseJson } from '../../lib/json.js';
import type { ChatBody } from '../completion/completion.js';
import type { OpenToolCall, OpenToolCalls } from './open-tool-calls.js';
import { countedName, ToolSums, type ToolCount } from './tool-counts.js';
import { isFailedResult } from './tool-result.js';

/** Maximum number of bytes of an unfinished call's counts: its record has a slot of fixed size. */
const MAX_OPEN_BYTES = 1_500;

interface Result {
  readonly call: OpenToolCall;
  readonly content: unknown;
}

/** The tools' calls in the answer of one AI call, and the results in its request. */
export class ToolTally {
  readonly #open: OpenToolCalls;
  readonly #caller: string;
  readonly #results: readonly Result[];
  readonly #hasTools: boolean;
  /** The calls of the answer, by their places in it. */
  readonly #called = new Map<string, Pick<OpenToolCall, 'id' | 'name'>>();

  /** @param caller the one whose later request carries the results. */
  constructor(open: OpenToolCalls, caller: string, { messages, tools }: ChatBody) {
    this.#open = open;
    this.#caller = caller;
    // Models call only tools that the request offers.
    this.#hasTools = Array.isArray(tools) && tools.length > 0;
    this.#results = open.has(caller) ? resultsIn(messages, open, caller) : [];
  }

  /** Reads a chunk of a stream. Only the first chunk of a call has its name; the others are not parsed. */
  readChunk(json: string): void {
    if (this.#hasTools && json.includes('"tool_calls"') && json.includes('"name"')) {
      this.#read(json, 'delta');
    }
  }

  readAnswer(json: string): void {
    if (this.#hasTools && json.includes('"tool_calls"')) this.#read(json, 'message');
  }

  /** Returns the calls so far, for a record that counts if this process is killed. */
  get soFar(): readonly ToolCount[] {
    return this.#sums([]).list(MAX_OPEN_BYTES);
  }

  /** Ends the answer: its calls wait for their results from now on, and the request's results count. */
  end(): readonly ToolCount[] {
    const results = this.#results.filter(({ call }) => this.#open.close(this.#caller, call));
    const sums = this.#sums(results);
    for (const call of this.#called.values()) this.#open.open(this.#caller, call);
    this.#called.clear();
    return sums.list();
  }

  #sums(results: readonly Result[]): ToolSums {
    const sums = new ToolSums();
    for (const { name } of this.#called.values()) sums.add(name, { calls: 1 });
    for (const { call, content } of results) {
      const { name, resultAt = call.since, since } = call;
      const successes = isFailedResult(content) ? 0 : 1;
      sums.add(name, { completed: 1, successes, ms: Math.round(resultAt - since) });
    }
    return sums;
  }

  #read(json: string, field: 'delta' | 'message'): void {
    const body = tryParseJson(json);
    for (const [at, choice] of listIn(body, 'choices').entries()) {
      const said = isObject(choice) ? choice[field] : undefined;
      for (const [position, call] of listIn(said, 'tool_calls').entries()) {
        const called = isObject(call) && isObject(call.function) ? call.function : {};
        const name = countedName(called.name);
        if (name === undefined) continue;
        const id = isObject(call) && typeof call.id === 'string' ? call.id : '';
        // Some providers repeat the name with every piece of the arguments.
        const place = `${placeOf(choice, at)}/${placeOf(call, id === '' ? position : id)}`;
        if (!this.#called.has(place)) this.#called.set(place, { id, name });
      }
    }
  }
}

function listIn(value: unknown, field: string): readonly unknown[] {
  const list = isObject(value) ? value[field] : undefined;
  return Array.isArray(list) ? list : [];
}

/** Returns the index in a piece of a stream, or `usual` if the piece has none. */
const placeOf = (piece: unknown, usual: number | string): number | string =>
  isObject(piece) && typeof piece.index === 'number' ? piece.index : usual;

function resultsIn(
  messages: ChatBody['messages'],
  open: OpenToolCalls,
  caller: string,
): readonly Result[] {
  const results: Result[] = [];
  for (const { content, role, tool_call_id: id } of messages) {
    if (role !== 'tool' || typeof id !== 'string') continue;
    const call = open.find(caller, id);
    if (call) results.push({ call, content });
  }
  return results;
}
