import { randomUUID } from 'node:crypto';
import { isObject, type JsonObject } from '../../../lib/json.js';
import type { FinishReason } from '../shared/openai-format.js';

/** Maximum number of tool calls of one answer; further ones are passed on as they are. */
const MAX_CALLS = 1_000;

/** Finish reasons of other formats, which some servers send in OpenAI's. */
const REASONS: ReadonlyMap<unknown, FinishReason | null> = new Map([
  ['', null],
  ['end_turn', 'stop'],
  ['eos', 'stop'],
  ['stop_sequence', 'stop'],
  ['max_tokens', 'length'],
  ['model_length', 'length'],
  ['tool_use', 'tool_calls'],
  ['tool_call', 'tool_calls'],
  ['safety', 'content_filter'],
  ['sensitive', 'content_filter'],
]);

/** Converts one answer of a server into the form that clients of OpenAI expect. */
export class AnswerForm {
  readonly #field: 'delta' | 'message';
  /** The tool calls so far by the position of their choice. */
  readonly #calls = new Map<unknown, CallPositions>();

  constructor(field: 'delta' | 'message') {
    this.#field = field;
  }

  /** Returns a body with the usual fields; the same body if nothing differs, as in nearly every chunk. */
  read(body: unknown): unknown {
    if (!isObject(body) || !Array.isArray(body.choices)) return body;
    const given: readonly unknown[] = body.choices;
    const choices = given.map((choice) => (isObject(choice) ? this.#usualChoice(choice) : choice));
    return choices.every((choice, at) => choice === given[at]) ? body : { ...body, choices };
  }

  #usualChoice(choice: JsonObject): JsonObject {
    const { [this.#field]: said, finish_reason: reason } = choice;
    const usual = isObject(said) ? this.#usualSaid(said, choice.index) : said;
    const known = REASONS.has(reason) ? REASONS.get(reason) : reason;
    // Clients run tools only for this reason.
    const finish = known === 'stop' && this.#calls.has(choice.index) ? 'tool_calls' : known;
    if (usual === said && finish === reason) return choice;
    return {
      ...choice,
      [this.#field]: usual,
      ...(finish !== undefined && { finish_reason: finish }),
    };
  }

  #usualSaid(said: JsonObject, choice: unknown): JsonObject {
    const { role, tool_calls: calls, content } = said;
    const hasRole = role !== '' && role !== null;
    const isPlain = hasRole && !Array.isArray(content);
    // Nearly every chunk is only a text.
    if (isPlain && calls === undefined) return said;
    const given: readonly unknown[] = Array.isArray(calls) ? calls : [];
    const usualCalls = given.map((call) => (isObject(call) ? this.#usualCall(call, choice) : call));
    const isUsual = usualCalls.every((call, at) => call === given[at]);
    const hasNoCalls = Array.isArray(calls) && calls.length === 0;
    if (isUsual && isPlain && !hasNoCalls) return said;
    const { role: _role, tool_calls: _calls, content: _content, ...others } = said;
    return {
      ...(hasRole && role !== undefined && { role }),
      ...(Array.isArray(content) ? textsOf(content) : content !== undefined && { content }),
      ...(calls !== undefined && !hasNoCalls && { tool_calls: isUsual ? calls : usualCalls }),
      ...others,
    };
  }

  /** Returns a call, or a piece of one, with the position that joins its pieces, an id, and a text as arguments. */
  #usualCall(call: JsonObject, choice: unknown): JsonObject {
    const positions = this.#calls.get(choice) ?? new CallPositions();
    this.#calls.set(choice, positions);
    if (positions.count >= MAX_CALLS) return call;
    const { position, isNew } = positions.of(call);
    const fn = isObject(call.function) ? call.function : {};
    const { name, arguments: json } = fn;
    const hasText = typeof json === 'string' || (json === undefined && this.#field === 'delta');
    const hasId = !isNew || !name || (typeof call.id === 'string' && call.id !== '');
    const isPlaced = this.#field === 'message' || call.index === position;
    if (hasText && hasId && isPlaced) return call;
    return {
      ...call,
      ...(!isPlaced && { index: position }),
      ...(!hasId && { id: `call_${randomUUID()}`, type: 'function' }),
      ...(!hasText && { function: { ...fn, arguments: json ? JSON.stringify(json) : '' } }),
    };
  }
}

/** The positions of the tool calls of one choice: some servers send none, or the same for all calls. */
class CallPositions {
  count = 0;
  readonly #open = new Map<unknown, { readonly id: unknown; readonly position: number }>();

  /** Returns the position of a piece. A piece that names a tool, and has an id of its own, begins a call. */
  of({ index, id, function: fn }: JsonObject): { position: number; isNew: boolean } {
    const open = this.#open.get(index);
    const isNamed = isObject(fn) && typeof fn.name === 'string' && fn.name !== '';
    const isOther = typeof id === 'string' && id !== '' ? id !== open?.id : index === undefined;
    if (open && !(isNamed && isOther)) return { position: open.position, isNew: false };
    const position = this.count++;
    this.#open.set(index, { id, position });
    return { position, isNew: true };
  }
}

/** Joins the texts of a content that is a list of parts, with thinking in the field that others use. */
function textsOf(parts: readonly unknown[]): JsonObject {
  let content = '';
  let thoughts = '';
  for (const part of parts) {
    const { thinking } = isObject(part) ? part : {};
    if (thinking === undefined) content += textOf(part);
    else thoughts += Array.isArray(thinking) ? thinking.map(textOf).join('') : textOf(thinking);
  }
  return { content, ...(thoughts !== '' && { reasoning_content: thoughts }) };
}

function textOf(part: unknown): string {
  if (typeof part === 'string') return part;
  return isObject(part) && typeof part.text === 'string' ? part.text : '';
}
