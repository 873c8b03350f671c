import { createHash } from 'node:crypto';
import { isObject, tryParseJson, type JsonObject } from '../../../lib/json.js';
import type { ChatMessage } from '../../completion/completion.js';

/** Upper bound of an id at OpenAI, in characters; the other providers take as many. */
const MAX_ID_LENGTH = 40;

/** Characters that a provider refuses in the id of a tool call. */
export type RefusedInIds = RegExp;

/**
 * Returns the messages with tool calls in a form that every provider takes: ids are short and used once,
 * arguments are JSON objects. Results keep the id of their call.
 */
export function withToolCalls(
  messages: readonly ChatMessage[],
  refused?: RefusedInIds,
): ChatMessage[] {
  const ids = new CallIds(refused);
  return messages.map((message) => {
    if (message.role === 'tool') return withResult(message, ids);
    if (message.role !== 'assistant' || !('tool_calls' in message)) return message;
    const { tool_calls: calls, ...others } = message;
    // OpenAI and Groq refuse an empty list.
    if (calls === null || calls === undefined) return others;
    if (!Array.isArray(calls)) return message;
    if (calls.length === 0) return others;
    ids.beginTurn();
    return { ...others, tool_calls: calls.map((call: unknown) => withCall(call, ids)) };
  });
}

function withCall(call: unknown, ids: CallIds): unknown {
  if (!isObject(call) || !isObject(call.function)) return call;
  const { name, arguments: json } = call.function;
  return { ...call, id: ids.ofCall(call.id), function: { name, arguments: objectJson(json) } };
}

function withResult(message: ChatMessage, ids: CallIds): ChatMessage {
  const id = ids.ofResult(message.tool_call_id);
  return id === message.tool_call_id ? message : { ...message, tool_call_id: id };
}

/** Returns arguments as the JSON of an object; a cut-off or other text becomes a value of an object. */
function objectJson(json: unknown): string {
  if (typeof json !== 'string') return JSON.stringify(isObject(json) ? json : {});
  if (json.trim() === '') return '{}';
  return isObject(tryParseJson(json)) ? json : JSON.stringify({ invalid_json: json });
}

/** Parses arguments that `withToolCalls` returned. */
export function parseArguments(json: unknown): JsonObject {
  const value = typeof json === 'string' ? tryParseJson(json) : undefined;
  return isObject(value) ? value : {};
}

/** The ids under which a provider receives the calls of a conversation. */
class CallIds {
  readonly #refused: RefusedInIds | undefined;
  readonly #used = new Set<string>();
  /** The sent ids by the given one; several if calls of one turn share an id. */
  readonly #sent = new Map<unknown, string[]>();
  #ofTurn = new Set<unknown>();

  constructor(refused: RefusedInIds | undefined) {
    this.#refused = refused;
  }

  beginTurn(): void {
    this.#ofTurn = new Set();
  }

  ofCall(given: unknown): string {
    const sent = this.#unused(given);
    this.#used.add(sent);
    if (this.#ofTurn.has(given)) this.#sent.get(given)?.push(sent);
    else this.#sent.set(given, [sent]);
    this.#ofTurn.add(given);
    return sent;
  }

  /** Returns the id of the call that a result answers; the given one if there is no such call. */
  ofResult(given: unknown): unknown {
    const sent = this.#sent.get(given);
    if (sent === undefined) return typeof given === 'string' ? this.#shortened(given) : given;
    return sent.length > 1 ? sent.shift() : sent[0];
  }

  #unused(given: unknown): string {
    const id = typeof given === 'string' ? given : '';
    const short = this.#shortened(id);
    return short !== '' && !this.#used.has(short) ? short : hashed(`${this.#used.size} ${id}`);
  }

  #shortened(id: string): string {
    if (id.length > MAX_ID_LENGTH) return hashed(id);
    return this.#refused ? id.replace(this.#refused, '_') : id;
  }
}

const hashed = (text: string): string =>
  `call_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
