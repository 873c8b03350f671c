import { createHash } from 'node:crypto';
import type { ProviderName } from '../../src/ai/completion/provider-names.js';

// Requests and answers of other programs have any form; each rule checks what it reads.
type Json = ReturnType<typeof JSON.parse>;

/** A server whose rules are known; `own` is any server at `OPENAI_BASE_URL`, and `mistral` one of these. */
export type ServerName = ProviderName | 'own' | 'mistral';

/** Returns the reason for which the real provider refuses a request; undefined if it accepts the request. */
export function refusal(server: ServerName, model: string, body: Json): string | undefined {
  try {
    wellFormed(body);
    RULES[server](model, body);
    return undefined;
  } catch (error) {
    if (error instanceof Refused) return error.message;
    throw error;
  }
}

class Refused extends Error {
  override readonly name = 'Refused';
}

function check(holds: unknown, reason: string): asserts holds {
  if (!holds) throw new Refused(reason);
}

function only(of: Json, allowed: readonly string[], where: string): void {
  for (const field of Object.keys(of)) {
    if (of[field] !== undefined) check(allowed.includes(field), `${where}: ${field} is unknown`);
  }
}

function wellFormed(value: Json): void {
  if (typeof value === 'string') check(!/\p{Surrogate}/u.test(value), 'half a surrogate pair');
  else if (typeof value === 'object' && value !== null) Object.values(value).forEach(wellFormed);
}

const isObject = (value: Json): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function jsonObject(text: Json): boolean {
  try {
    return isObject(JSON.parse(text));
  } catch {
    return false;
  }
}

function objectSchema(schema: Json, where: string): void {
  check(isObject(schema) && schema.type === 'object', `${where}: type must be object`);
  sound(schema, where);
  for (const word of ['anyOf', 'oneOf', 'allOf']) check(!(word in schema), `${where}: ${word}`);
}

const TYPES = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'];

function sound(schema: Json, where: string): void {
  const { type, required, items, properties, anyOf, $defs: defs } = schema;
  check(
    [type ?? 'null'].flat().every((each: Json) => TYPES.includes(each)),
    `${where}: type`,
  );
  check(required === undefined || Array.isArray(required), `${where}: required`);
  check(
    ![type].flat().includes('array') || isObject(items),
    `${where}: array schema missing items`,
  );
  check(typeof schema.exclusiveMinimum !== 'boolean', `${where}: exclusiveMinimum`);
  const inner = [properties, defs].flatMap((named) => Object.values(named ?? {}));
  for (const each of [...inner, ...(anyOf ?? []), ...(items ? [items] : [])]) sound(each, where);
}

/** Checks a schema that Anthropic makes the model follow. */
function strict(schema: Json): void {
  for (const word of ['minimum', 'minLength', 'maxItems', 'oneOf']) {
    check(!(word in schema), `property '${word}' is not supported`);
  }
  if (schema.type === 'object')
    check(schema.additionalProperties === false, 'additionalProperties');
  for (const each of [
    ...Object.values(schema.properties ?? {}),
    ...(schema.items ? [schema.items] : []),
  ])
    strict(each);
}

function declaredOnce(names: Json[]): void {
  check(new Set(names).size === names.length, 'Tool names must be unique');
}

/** Signs a thought of a model, as the provider of the model does. */
export const signed = (model: string, thought: string): string =>
  createHash('sha256').update(`${model}\n${thought}`).digest('base64');

const RULES: Readonly<Record<ServerName, (model: string, body: Json) => void>> = {
  anthropic,
  gemini,
  openai: (model, body) => {
    const reasons = /^(o\d|gpt-[5-9])/.test(model);
    for (const field of ['user', 'prompt_cache_key']) {
      check((body[field] ?? '').length <= 64, `Invalid '${field}': string too long`);
    }
    if (reasons && body.tools) {
      check(body.reasoning_effort === 'none', 'Function tools with reasoning_effort');
    }
    const sampling = ['temperature', 'top_p', 'presence_penalty', 'frequency_penalty', 'stop'];
    check(body.max_tokens === undefined, 'max_tokens is not supported');
    if (reasons && body.reasoning_effort !== 'none') {
      for (const field of sampling) check(body[field] === undefined, `${field} is not supported`);
    }
    if (!reasons) check(body.reasoning_effort === undefined, 'reasoning_effort is not supported');
    openAiFormat(body, { ...OPENAI, images: reasons, jsonAsked: true });
  },
  own: (_model, body) => openAiFormat(body, OWN),
  mistral: (_model, body) =>
    openAiFormat(body, { ...OWN, ids: /^[a-zA-Z0-9]{9}$/, answersResults: true }),
  openrouter: (model, body) => {
    only(body, [...FIELDS, 'reasoning', 'include_reasoning', 'top_k', 'verbosity'], 'body');
    const marked = JSON.stringify(body).match(/"cache_control":/g) ?? [];
    check(marked.length <= 4, 'A maximum of 4 blocks with cache_control may be provided');
    if (model.startsWith('minimax/')) oneInstruction(body);
    if (model === 'google/gemini-3.8-flash') {
      for (const { reasoning_details: details = [], tool_calls: made } of body.messages) {
        const signed = details.filter(({ format }: Json) => format === 'google-gemini-v1');
        check(!made || signed.length > 0, 'Function call is missing a thought_signature');
      }
    }
    openAiFormat(body, {
      ...OPENAI,
      jsonArguments: true,
      cacheControl: true,
      images: !/gpt-oss|gpt-4$|minimax-m2/.test(model),
      assistant: [...OPENAI.assistant, 'reasoning', 'reasoning_content', 'reasoning_details'],
      tool: ['tool_call_id', 'name'],
    });
    for (const { reasoning_details: details } of body.messages) {
      for (const { format, id } of details ?? []) {
        check(!/^anthropic\//.test(id ?? ''), 'reasoning_details of another service');
        check(!/minimax/i.test(format ?? ''), 'reasoning_details');
      }
    }
  },
  groq: (model, body) => {
    const refused = ['logit_bias', 'logprobs', 'top_logprobs', 'verbosity', 'prompt_cache_key'];
    const own = ['reasoning_format', 'include_reasoning'];
    only(body, [...FIELDS.filter((field) => !refused.includes(field)), ...own], 'body');
    check((body.n ?? 1) === 1, 'n must be 1');
    check(!body.tools || !body.response_format, 'json mode cannot be combined with tool calling');
    check([undefined, 'low', 'medium', 'high'].includes(body.reasoning_effort), 'reasoning_effort');
    openAiFormat(body, {
      ...OPENAI,
      jsonAsked: true,
      jsonArguments: true,
      developer: false,
      properties: false,
      images: !model.includes('gpt-oss'),
      textLists: false,
      name: [],
      assistant: ['tool_calls', 'function_call'],
    });
  },
  minimax: (model, body) => {
    check((body.n ?? 1) === 1, 'n must be 1');
    const { temperature = 1 } = body;
    check(temperature > 0 && temperature <= 1, 'temperature');
    oneInstruction(body);
    openAiFormat(body, {
      ...OPENAI,
      jsonArguments: true,
      developer: false,
      images: !/m2/i.test(model),
      assistant: ['name', 'tool_calls', 'function_call', 'reasoning_details'],
    });
    for (const { role, content, tool_calls: calls } of body.messages) {
      check(role === 'tool' || calls || content, 'chat content is empty');
    }
    for (const { reasoning_details: details } of body.messages) {
      for (const { format } of details ?? []) check(/minimax/i.test(format ?? ''), 'format');
    }
  },
};

const FIELDS = [
  'model',
  'messages',
  'stream',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'n',
  'temperature',
  'top_p',
  'stop',
  'seed',
  'presence_penalty',
  'frequency_penalty',
  'logit_bias',
  'logprobs',
  'top_logprobs',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'response_format',
  'reasoning_effort',
  'verbosity',
  'user',
  'prompt_cache_key',
];

const OPENAI = {
  jsonAsked: false,
  developer: true,
  properties: true,
  images: true,
  cacheControl: false,
  textLists: true,
  jsonArguments: false,
  name: ['name'] as readonly string[],
  assistant: ['name', 'refusal', 'tool_calls', 'function_call'] as readonly string[],
  tool: ['tool_call_id'] as readonly string[],
  ids: /^.{1,40}$/,
  answersResults: false,
};

const OWN = { ...OPENAI, developer: false, properties: false, cacheControl: true };

/** Checks instructions as MiniMax does. */
function oneInstruction({ messages }: Json): void {
  const at = messages.findLastIndex(({ role }: Json) => role === 'system' || role === 'developer');
  check(at <= 0, 'invalid chat setting (2013)');
}

/** Checks OpenAI's format, as far as one of its servers accepts the format. */
function openAiFormat(body: Json, rules: typeof OPENAI): void {
  check(Array.isArray(body.messages) && body.messages.length > 0, 'no messages');
  if (rules.jsonAsked && body.response_format?.type === 'json_object') {
    const asked = body.messages.some((each: Json) =>
      /json/i.test(JSON.stringify(each.content ?? '')),
    );
    check(asked, "'messages' must contain the word 'json' in some form");
  }
  let open: string[] = [];
  let before = '';
  for (const message of body.messages) {
    const { role, content } = message;
    const isOrdered = before !== 'tool' || role === 'tool' || role === 'assistant';
    check(!rules.answersResults || isOrdered, `Unexpected role '${role}' after role 'tool'`);
    before = role;
    if (role === 'tool') {
      check(open.includes(message.tool_call_id), 'a result of no call');
      open = open.filter((id) => id !== message.tool_call_id);
    } else check(open.length === 0, 'a call without a result');
    const fields =
      role === 'tool' ? rules.tool : role === 'assistant' ? rules.assistant : rules.name;
    only(message, ['role', 'content', ...fields], `message of ${role}`);
    check(/^[^\s<|\\/>]{1,64}$/.test(message.name ?? 'x'), 'name does not match');
    check(role !== 'developer' || rules.developer, 'invalid role: developer');
    if (role === 'assistant') check(content || message.tool_calls, 'an empty answer');
    else check(content !== null && content !== undefined, 'content is missing');
    if (Array.isArray(content)) parts(content, role, rules);
    if (message.tool_calls !== undefined) open = calls(message.tool_calls, rules);
  }
  check(open.length === 0, 'a call without a result');
  if (body.tools === undefined) {
    check(body.tool_choice === undefined, 'tool_choice without tools');
    check(body.parallel_tool_calls === undefined, 'parallel_tool_calls without tools');
    return;
  }
  check(body.tools.length > 0, 'tools is too short');
  declaredOnce(body.tools.map((tool: Json) => tool.function?.name));
  for (const tool of body.tools) {
    only(tool, ['type', 'function', ...(rules.cacheControl ? ['cache_control'] : [])], 'tool');
    check(tool.type === 'function' && isObject(tool.function), 'tool.type');
    const { parameters, description } = tool.function;
    check(description !== null, 'description: expected a string, but got null');
    check(parameters || !rules.properties, 'function parameters is empty');
    if (parameters === undefined) continue;
    objectSchema(parameters, 'parameters');
    check(parameters.properties || !rules.properties, 'object schema missing properties');
  }
}

function parts(content: Json, role: string, rules: typeof OPENAI): void {
  check(content.length > 0, 'an empty list of parts');
  for (const part of content) {
    check(rules.cacheControl || part.cache_control === undefined, 'cache_control');
    check(part.type !== 'refusal', 'a part of the type refusal');
    check(!/^data:[^,]*,$/.test(part.image_url?.url ?? ''), 'an image without data');
    check(part.type !== 'image_url' || (role === 'user' && rules.images), `an image of ${role}`);
  }
  const isText = content.every(({ type }: Json) => type === 'text');
  check(rules.textLists || !isText, 'content must be a string');
}

function calls(made: Json, rules: typeof OPENAI): string[] {
  check(Array.isArray(made) && made.length > 0, 'tool_calls is too short');
  for (const call of made) {
    only(call, ['id', 'type', 'function'], 'tool call');
    check(typeof call.id === 'string' && call.id !== '', 'an id is missing');
    check(rules.ids.test(call.id), `the id of a call must match ${rules.ids.source}`);
    check(/^[\w-]{1,64}$/.test(call.function.name), 'function.name');
    check(call.type === 'function', 'type');
    check(!rules.jsonArguments || jsonObject(call.function.arguments), 'arguments are not JSON');
  }
  return made.map(({ id }: Json) => id);
}

function anthropic(model: string, body: Json): void {
  only(
    body,
    [
      ...['model', 'max_tokens', 'messages', 'system', 'stream', 'tools', 'tool_choice'],
      ...['temperature', 'top_p', 'top_k', 'stop_sequences', 'metadata', 'thinking'],
      'output_config',
    ],
    'body',
  );
  const [, family, major = '0', minor = '0'] = /^claude-([a-z]+)-(\d)-?(\d)?$/.exec(model) ?? [];
  const version = Number(`${major}.${minor}`);
  const isAlways = version >= 5.5 && family !== 'haiku';
  const { thinking = {}, max_tokens: most, tool_choice: choice } = body;
  check(Number.isInteger(most) && most > 0, 'max_tokens is required');
  if (thinking.type === 'enabled') {
    check(version < 4.7, '"thinking.type.enabled" is not supported for this model');
    check(thinking.budget_tokens >= 1_024, 'budget_tokens');
    check(most > thinking.budget_tokens, '`max_tokens` must be greater than budget_tokens');
  }
  if (thinking.type === 'adaptive') check(version >= 4.6, 'adaptive thinking');
  if (thinking.type === 'disabled') check(!isAlways, '"thinking.type.disabled"');
  const isOn = isAlways || ['enabled', 'adaptive'].includes(thinking.type);
  const mayThink = isOn || (version >= 5 && thinking.type !== 'disabled');
  const isForced = choice?.type === 'any' || choice?.type === 'tool';
  check(!isForced || !(isAlways || thinking.type === 'enabled'), 'thinking and a forced call');
  check(choice === undefined || body.tools?.length > 0, 'tool_choice without tools');
  for (const name of ['temperature', 'top_p', 'top_k']) {
    check(body[name] === undefined || version < 4.7, `${name} is not supported`);
  }
  if (isOn) check(body.temperature === undefined && body.top_k === undefined, 'sampling');
  check((body.temperature ?? 0) <= 1, 'temperature');
  check(!('temperature' in body && 'top_p' in body), 'temperature and top_p');
  for (const block of body.system ?? []) check(block.text.trim() !== '', 'a blank system text');
  for (const tool of body.tools ?? []) {
    objectSchema(tool.input_schema, 'input_schema');
    if (tool.strict === true) strict(tool.input_schema);
    check(tool.description !== null, 'description: Input should be a valid string');
  }
  declaredOnce((body.tools ?? []).map(({ name }: Json) => name));
  if (body.output_config?.format) strict(body.output_config.format.schema);
  check(!/@/.test(body.metadata?.user_id ?? ''), 'user_id appears to contain an email address');
  const marked = JSON.stringify(body).match(/"cache_control":/g) ?? [];
  check(marked.length <= 4, 'A maximum of 4 blocks with cache_control may be provided');
  const ends = body.messages.at(-1)?.role;
  check(ends !== 'assistant' || thinking.type !== 'enabled', 'a final answer without thinking');

  const turns = merged(body.messages, 'content', (content: Json) =>
    typeof content === 'string' ? [{ type: 'text', text: content }] : content,
  );
  check(turns.length > 0 && turns[0]?.role === 'user', 'the first message must be of the user');
  check(turns.at(-1)?.role === 'user' || version < 4.6, 'the conversation must end with the user');
  const ids = new Set<string>();
  let open: string[] = [];
  for (const { role, items } of turns) {
    const results = items.filter(({ type }: Json) => type === 'tool_result');
    const answered = results.map(({ tool_use_id: id }: Json) => id);
    check(
      open.every((id) => answered.includes(id)),
      'tool_use without tool_result',
    );
    check(
      answered.every((id: string) => open.includes(id)),
      'tool_result without tool_use',
    );
    open = [];
    check(items.length > 0, 'an empty turn');
    for (const [at, block] of items.entries()) {
      anthropicBlock(block, role);
      if (/thinking/.test(block.type)) {
        check(mayThink, 'thinking is disabled, and there is a thinking block');
        check(!isAlways || thinking.block_binding, 'bound to a different conversation');
        const before = items.slice(0, at).every(({ type }: Json) => /thinking/.test(type));
        check(before, 'a thinking block after another block');
        if (block.type === 'thinking') {
          check(block.signature === signed(model, block.thinking), 'invalid signature');
        }
      }
      if (block.type !== 'tool_use') continue;
      check(body.tools?.length > 0, 'tools must be defined');
      check(/^[a-zA-Z0-9_-]+$/.test(block.id) && !ids.has(block.id), 'tool_use.id');
      ids.add(block.id);
      open.push(block.id);
    }
  }
  check(open.length === 0, 'tool_use without tool_result');
  const last = turns.findLast(({ role }) => role === 'assistant');
  const calledLast = last?.items.some(({ type }: Json) => type === 'tool_use');
  if (thinking.type === 'enabled' && calledLast) {
    check(/thinking/.test(last?.items[0].type), 'Expected `thinking`, but found `tool_use`');
  }
}

function anthropicBlock(block: Json, role: string): void {
  switch (block.type) {
    case 'text':
      return check(
        block.text.trim() !== '',
        'text content blocks must contain non-whitespace text',
      );
    case 'image':
      check(role === 'user', 'an image of an assistant');
      if (block.source.type === 'url') {
        return check(block.source.url.startsWith('https:'), 'Only HTTPS URLs are supported');
      }
      check(block.source.data !== '', 'image cannot be empty');
      if (block.source.data.startsWith('iVBORw0KGgo')) {
        check(block.source.media_type === 'image/png', 'the image appears to be a image/png image');
      }
      return check(/^image\/(jpeg|png|gif|webp)$/.test(block.source.media_type), 'media_type');
    case 'tool_use':
      check(/^[\w-]{1,128}$/.test(block.name), 'tool_use.name');
      return check(role === 'assistant' && isObject(block.input), 'tool_use.input');
    case 'tool_result':
      check(role === 'user' && block.content !== '', 'tool_result');
      if (typeof block.content === 'string') return check(block.content.trim() !== '', 'blank');
      return (block.content ?? []).forEach((part: Json) => anthropicBlock(part, 'user'));
    case 'thinking':
    case 'redacted_thinking':
      return check(role === 'assistant', 'thinking of a user');
    default:
      throw new Refused(`unknown block ${block.type}`);
  }
}

/** Merges neighbouring turns of one role, as both providers do. */
function merged(turns: Json, field: string, toItems: (content: Json) => Json[]) {
  const all: { role: string; items: Json[] }[] = [];
  for (const turn of turns) {
    const last = all.at(-1);
    if (last?.role === turn.role) last?.items.push(...toItems(turn[field]));
    else all.push({ role: turn.role, items: [...toItems(turn[field])] });
  }
  return all;
}

function gemini(model: string, body: Json): void {
  const config = body.generationConfig ?? {};
  if (!model.startsWith('gemini-2.0')) {
    check(config.presencePenalty === undefined, 'Penalty is not enabled');
    check(config.frequencyPenalty === undefined, 'Penalty is not enabled');
  }
  check(Math.abs(config.seed ?? 0) < 2 ** 31, 'generation_config.seed (TYPE_INT32)');
  const isOld = model.startsWith('gemini-2');
  const isForced = body.toolConfig?.functionCallingConfig?.mode === 'ANY';
  check(
    !config.responseMimeType || !body.tools || !(isOld || isForced),
    "Function calling with a response mime type: 'application/json' is unsupported",
  );
  for (const { functionDeclarations: declared } of body.tools ?? []) {
    declaredOnce(declared.map(({ name }: Json) => name));
    for (const { name } of declared)
      check(/^[A-Za-z_][\w.:-]{0,63}$/.test(name), 'Invalid function name');
    for (const { parametersJsonSchema: schema } of declared) {
      if (schema !== undefined) objectSchema(schema, 'parametersJsonSchema');
    }
  }
  check(body.contents.length > 0, 'no contents');
  check(body.contents[0].role === 'user', 'a call must come after the user');
  check(body.contents.at(-1).role === 'user', 'the last turn must be of the user');
  let open = 0;
  let before = '';
  for (const { role, parts: items } of body.contents) {
    check(items.length > 0, 'parts must not be empty');
    const made = items.filter((part: Json) => part.functionCall);
    const answered = items.filter((part: Json) => part.functionResponse).length;
    check(answered === open, 'as many function responses as calls');
    if (made.length > 0) check(role === 'model' && before === 'user', 'a call after an answer');
    if (made.length > 0 && !model.startsWith('gemini-2')) {
      const { functionCall: call, thoughtSignature: signature } = made[0];
      const valid = ['skip_thought_signature_validator', signed(model, call.name)];
      check(valid.includes(signature), 'a call without a thought signature');
    }
    for (const part of items) geminiPart(part);
    open = made.length;
    before = role;
  }
  check(open === 0, 'a call without a response');
}

function geminiPart({ text, inlineData, fileData, functionCall, functionResponse }: Json): void {
  if (functionCall) return check(isObject(functionCall.args), 'args');
  if (functionResponse) return check(isObject(functionResponse.response), 'response');
  if (inlineData) {
    check(inlineData.data !== '', 'Unable to process input image');
    return check(/^image\/(png|jpeg|webp|heic|heif)$/.test(inlineData.mimeType), 'mimeType');
  }
  if (fileData) return;
  check(typeof text === 'string' && text !== '', 'a part without data');
}
