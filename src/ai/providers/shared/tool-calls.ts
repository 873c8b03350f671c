import { createHash } from 'node:crypto';
import { isObject, tryParseJson, withWholePairs, type JsonObject } from '../../../lib/json.js';
import type { ChatMessage } from '../../completion/completion.js';
import { beginOfTurn } from './left-out.js';

/** Upper bound of an id at OpenAI, in characters; the other providers accept as many. */
const MAX_ID_LENGTH = 40;

/** Upper bound of a tool's name at OpenAI, in characters. */
const MAX_NAME_LENGTH = 64;

/** Content of a result that the client does not send: it broke off the call, or truncated the conversation. */
const NO_RESULT = '(no result)';

/** The form of tool calls at a provider. */
export interface CallForm {
  readonly refusedInIds?: RegExp;
  readonly refusedInNames?: RegExp;
  /** Letters and digits of an id, if the provider accepts no other ids. */
  readonly idLength?: number;
  /** Requires an answer after the results of calls, before any other message. */
  readonly requiresAnswer?: boolean;
}

/**
 * Returns the messages with tool calls in a form that every provider accepts: ids are short and used once,
 * names have the characters of a name, arguments are JSON objects, and each call has one result, right after it.
 */
export function withToolCalls(
  messages: readonly ChatMessage[],
  form: CallForm = {},
): ChatMessage[] {
  const ids = new CallIds(form);
  const withIds = messages.map((message) => {
    if (message.role === 'tool') return withResult(message, ids);
    if (message.role !== 'assistant' || !('tool_calls' in message)) return message;
    const { tool_calls: calls, ...others } = message;
    // OpenAI and Groq refuse an empty list.
    if (calls === null || calls === undefined) return others;
    if (!Array.isArray(calls)) return message;
    if (calls.length === 0) return others;
    ids.beginTurn();
    const sent = calls.map((call: unknown) => withCall(call, ids, form.refusedInNames));
    return { ...withSentIds(others, calls, sent), tool_calls: sent };
  });
  return withResults(withIds);
}

/** Renames calls in the details of reasoning, which name the call that they belong to. */
function withSentIds(
  message: ChatMessage,
  given: readonly unknown[],
  sent: readonly unknown[],
): ChatMessage {
  const { reasoning_details: details } = message;
  if (!Array.isArray(details)) return message;
  const renamed = new Map(sent.map((call, at) => [idOf(given[at]), idOf(call)]));
  return {
    ...message,
    reasoning_details: details.map((each: unknown) =>
      isObject(each) && renamed.has(each.id) ? { ...each, id: renamed.get(each.id) } : each,
    ),
  };
}

const idOf = (call: unknown): unknown => (isObject(call) ? call.id : undefined);

/**
 * Puts one result after each call, and leaves out results whose call is missing in earlier turns: providers
 * refuse both. The user learns of those in the current turn by an error.
 */
function withResults(messages: readonly ChatMessage[]): ChatMessage[] {
  const current = beginOfTurn(messages);
  const results = new Map(
    messages.filter(({ role }) => role === 'tool').map((each) => [each.tool_call_id, each]),
  );
  const called = new Set(messages.flatMap(callsOf).map(({ id }) => id));
  return messages.flatMap((message, at) => {
    if (message.role === 'tool') {
      return at < current || called.has(message.tool_call_id) ? [] : [message];
    }
    const resultOf = ({ id }: JsonObject) =>
      results.get(id) ?? { role: 'tool', tool_call_id: id, content: NO_RESULT };
    return [message, ...callsOf(message).map(resultOf)];
  });
}

const callsOf = ({ tool_calls: calls }: ChatMessage): JsonObject[] =>
  Array.isArray(calls) ? calls.filter(isObject) : [];

function withCall(call: unknown, ids: CallIds, refusedInNames = /[^\w-]/g): unknown {
  if (!isObject(call) || !isObject(call.function)) return call;
  const { name, arguments: json } = call.function;
  return {
    ...call,
    id: ids.ofCall(call.id),
    type: 'function',
    function: { name: sentName(name, refusedInNames), arguments: objectJson(json) },
  };
}

/** Returns a name that the provider accepts; a model may have called an undeclared tool. */
export function sentName(name: unknown, refused: RegExp): string {
  const given = typeof name === 'string' ? name : '';
  return given.replace(refused, '_').slice(0, MAX_NAME_LENGTH) || 'unknown';
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
  return (typeof json === 'string' ? parseObject(json) : undefined) ?? {};
}

/** Parses a JSON object whose texts every provider accepts; undefined for anything else. */
export function parseObject(json: string): JsonObject | undefined {
  const value = tryParseJson(withWholePairs(json));
  return isObject(value) ? value : undefined;
}

/** The ids under which a provider receives the calls of a conversation. */
class CallIds {
  readonly #form: CallForm;
  readonly #used = new Set<string>();
  /** The sent ids by the given one; several if calls of one turn share an id. */
  readonly #sent = new Map<unknown, string[]>();
  #ofTurn = new Set<unknown>();

  constructor(form: CallForm) {
    this.#form = form;
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
    return short !== '' && !this.#used.has(short)
      ? short
      : this.#hashed(`${this.#used.size} ${id}`);
  }

  #shortened(id: string): string {
    const { idLength, refusedInIds } = this.#form;
    if (idLength !== undefined) {
      return id.length === idLength && /^[a-z\d]+$/i.test(id) ? id : this.#hashed(id);
    }
    if (id.length > MAX_ID_LENGTH) return this.#hashed(id);
    return refusedInIds ? id.replace(refusedInIds, '_') : id;
  }

  #hashed(text: string): string {
    const { idLength } = this.#form;
    const hash = createHash('sha256').update(text).digest('hex');
    return idLength === undefined ? `call_${hash.slice(0, 32)}` : hash.slice(0, idLength);
  }
}
