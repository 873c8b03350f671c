import { createHash } from 'node:crypto';
import { PROVIDER_BASE_URLS, type ProviderName } from '../../completion/provider-names.js';
import type { ChatRequest } from '../../completion/completion.js';
import { withoutFields } from '../shared/fields.js';
import { isFromAnthropic } from '../shared/reasoning.js';
import type { CallForm } from '../shared/tool-calls.js';
import { isObject } from '../../../lib/json.js';

/**
 * The parts of OpenAI's format that a server accepts; servers differ, and most refuse fields that they do not
 * know.
 */
export interface ServerRules {
  /** Fields of the body that the server refuses, although most servers accept them. */
  readonly refusedFields: ReadonlySet<string>;
  /** Accepts the role `developer`; for other servers, `system` replaces it. */
  readonly takesDeveloper: boolean;
  /** Accepts `cache_control` in parts and tools. */
  readonly takesCacheControl: boolean;
  /** Accepts lists of texts as content; other servers require a text. */
  readonly takesTextLists: boolean;
  /** Refuses tools without parameters, and parameters of the type "object" without properties. */
  readonly requiresProperties: boolean;
  /** Refuses "any JSON" as the form of the answer if no message mentions JSON. */
  readonly requiresJsonAsked: boolean;
  /** Fields of a message by role, beside `role` and `content`. */
  readonly messageFields: Readonly<Record<string, readonly string[]>>;
  /** Fields of a tool call that only some servers accept. */
  readonly callFields: readonly string[];
  /** Returns the form of tool calls that the server requires. */
  readonly callForm: (model: string) => CallForm;
  /** The entries of `reasoning_details` that the server accepts. */
  readonly takesDetail: (detail: unknown) => boolean;
  readonly takesImages: (model: string) => boolean;
  /** Accepts one message of instructions, at the beginning. */
  readonly takesOneInstruction: (model: string) => boolean;
  /** Requires a signature of Gemini for the calls of an answer. */
  readonly requiresSignature: (model: string) => boolean;
  /** Changes settings that the model refuses. */
  readonly withSettings: (request: ChatRequest) => ChatRequest;
}

const CALLS = ['tool_calls', 'function_call'];
const NAMED = { system: ['name'], user: ['name'], function: ['name'] };

/** OpenAI's own API, which ignores few fields and refuses the others. */
const openai: ServerRules = {
  refusedFields: new Set(),
  takesDeveloper: true,
  takesCacheControl: false,
  takesTextLists: true,
  requiresProperties: true,
  requiresJsonAsked: true,
  messageFields: {
    ...NAMED,
    developer: ['name'],
    assistant: ['name', 'refusal', ...CALLS],
    tool: ['tool_call_id'],
  },
  callFields: [],
  callForm: () => ({}),
  takesDetail: () => false,
  takesImages: (model) => !/^gpt-(?:3\.5|4(?:-\d{4}|-32k)?$)/.test(model),
  takesOneInstruction: () => false,
  requiresSignature: () => false,
  withSettings: forOpenAiModel,
};

/** Tool calls at Mistral, and at other servers by the templates of its models. */
const MISTRAL_CALLS: CallForm = { idLength: 9, requiresAnswer: true };

const MISTRAL_MODEL = /(?:mis|minis|magis|devs|codes)tral|mixtral|pixtral/i;

/** Any server at `OPENAI_BASE_URL`: only the oldest fields of the format are sent. */
const ownServer: ServerRules = {
  ...openai,
  takesDeveloper: false,
  takesCacheControl: true,
  requiresProperties: false,
  requiresJsonAsked: false,
  callForm: (model) => (MISTRAL_MODEL.test(model) ? MISTRAL_CALLS : {}),
  takesImages: () => true,
  withSettings: (request) => request,
};

/** Mistral's service, whatever the name of the model. */
const mistral: ServerRules = { ...ownServer, callForm: () => MISTRAL_CALLS };

const IS_MISTRAL = /^https?:\/\/(?:[\w-]+\.)*mistral\.ai(?:[:/]|$)/i;

/** Services that refuse a turn with tools without the reasoning that they gave out. */
const ownServerWithReasoning: ServerRules = {
  ...ownServer,
  messageFields: {
    ...ownServer.messageFields,
    assistant: ['name', 'refusal', 'reasoning', 'reasoning_content', ...CALLS],
  },
  callFields: ['extra_content'],
};

const NEEDS_REASONING =
  /^https?:\/\/(?:[\w-]+\.)*(?:deepseek\.com|moonshot\.(?:ai|cn)|googleapis\.com)(?:[:/]|$)/i;

const openrouter: ServerRules = {
  refusedFields: new Set(['n']),
  takesDeveloper: true,
  takesCacheControl: true,
  takesTextLists: true,
  requiresProperties: true,
  requiresJsonAsked: false,
  messageFields: {
    ...NAMED,
    developer: ['name'],
    assistant: ['name', 'refusal', 'reasoning', 'reasoning_content', 'reasoning_details', ...CALLS],
    tool: ['tool_call_id', 'name'],
  },
  callFields: [],
  callForm: () => ({}),
  takesDetail: (detail) => !isFromAnthropic(detail) && !isFromMiniMax(detail),
  takesImages: (model) => !/gpt-oss|\/gpt-4$|\/gpt-3|minimax-m2/.test(model),
  takesOneInstruction: (model) => model.startsWith('minimax/'),
  requiresSignature: (model) => /^google\/gemini-(?![12]\b)/.test(model),
  withSettings: (request) => request,
};

/** Groq refuses every field that it does not know, and lists of texts for models without images. */
const groq: ServerRules = {
  refusedFields: new Set([
    'n',
    'logit_bias',
    'logprobs',
    'top_logprobs',
    'verbosity',
    'safety_identifier',
    'prompt_cache_key',
  ]),
  takesDeveloper: false,
  takesCacheControl: false,
  takesTextLists: false,
  requiresProperties: false,
  requiresJsonAsked: true,
  messageFields: { assistant: CALLS, tool: ['tool_call_id'], function: ['name'] },
  callFields: [],
  callForm: () => ({}),
  takesDetail: () => false,
  takesImages: (model) => /llama-4|vision|scout|maverick|-vl\b/.test(model),
  takesOneInstruction: () => false,
  requiresSignature: () => false,
  withSettings: forGroqModel,
};

const minimax: ServerRules = {
  refusedFields: new Set(['n']),
  takesDeveloper: false,
  takesCacheControl: false,
  takesTextLists: false,
  requiresProperties: true,
  requiresJsonAsked: false,
  messageFields: {
    ...NAMED,
    assistant: ['name', 'reasoning_details', ...CALLS],
    tool: ['tool_call_id'],
  },
  callFields: [],
  callForm: () => ({}),
  takesDetail: isFromMiniMax,
  takesImages: (model) => !/^minimax-(?:m1|m2|text)/i.test(model),
  takesOneInstruction: () => true,
  requiresSignature: () => false,
  withSettings: forMiniMax,
};

/** Returns the rules of the server that a provider's requests go to. */
export function rulesOf(name: ProviderName, baseUrl: string): ServerRules {
  switch (name) {
    case 'openrouter':
      return openrouter;
    case 'groq':
      return groq;
    case 'minimax':
      return minimax;
    default:
      if (baseUrl === PROVIDER_BASE_URLS.openai) return openai;
      if (IS_MISTRAL.test(baseUrl)) return mistral;
      return NEEDS_REASONING.test(baseUrl) ? ownServerWithReasoning : ownServer;
  }
}

function isFromMiniMax(detail: unknown): boolean {
  return isObject(detail) && typeof detail.format === 'string' && /^minimax/i.test(detail.format);
}

/** Models of OpenAI that reason before they answer. */
const REASONS = /^(?:o\d|gpt-(?:[5-9]|\d\d))(?!.*chat)/;

/** Settings accepted only by models without reasoning, or while reasoning is switched off. */
const WITHOUT_REASONING = [
  'temperature',
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'logprobs',
  'top_logprobs',
  'logit_bias',
  'stop',
];

/** Models that accept tools only while reasoning is switched off. */
const EITHER_TOOLS_OR_REASONING = /^gpt-(?:5\.[2-9]|[6-9]|\d\d)(?!.*chat)/;

/** Renames the output bound, since newer models refuse its old name, and drops what the model refuses. */
function forOpenAiModel({ max_tokens: most, ...given }: ChatRequest): ChatRequest {
  const labelled = withShortLabels(given);
  const request: ChatRequest =
    most === undefined ? labelled : { max_completion_tokens: most, ...labelled };
  const { model, tools } = request;
  if (!REASONS.test(model)) return withoutFields(request, ['reasoning_effort', 'verbosity']);
  if (tools !== undefined && EITHER_TOOLS_OR_REASONING.test(model)) {
    return { ...request, reasoning_effort: 'none' };
  }
  return request.reasoning_effort === 'none' ? request : withoutFields(request, WITHOUT_REASONING);
}

const LABELS = ['user', 'safety_identifier', 'prompt_cache_key'];
const MAX_LABEL_LENGTH = 64;

/** Shortens the labels that OpenAI refuses for their length; requests with one label keep one. */
function withShortLabels(request: ChatRequest): ChatRequest {
  const long = LABELS.flatMap((field): [string, string][] => {
    const label = request[field];
    return typeof label === 'string' && label.length > MAX_LABEL_LENGTH
      ? [[field, createHash('sha256').update(label).digest('hex')]]
      : [];
  });
  return { ...request, ...Object.fromEntries(long) };
}

const GROQ_EFFORTS: Readonly<Record<string, string>> = {
  none: 'low',
  minimal: 'low',
  xhigh: 'high',
  max: 'high',
};

/** Sends the effort by the model's own values; models that do not reason refuse it. */
function forGroqModel(given: ChatRequest): ChatRequest {
  // Groq refuses a format of the answer beside tools.
  const request = given.tools === undefined ? given : withoutFields(given, ['response_format']);
  const { model, reasoning_effort: effort } = request;
  if (typeof effort !== 'string') return request;
  if (model.includes('gpt-oss')) {
    return { ...request, reasoning_effort: GROQ_EFFORTS[effort] ?? effort };
  }
  if (!model.includes('qwen')) return withoutFields(request, ['reasoning_effort']);
  return { ...request, reasoning_effort: effort === 'none' ? effort : 'default' };
}

/** The lowest and the highest temperature that MiniMax accepts. */
const MINIMAX_TEMPERATURE = [0.01, 1] as const;

function forMiniMax(request: ChatRequest): ChatRequest {
  const { temperature } = request;
  if (typeof temperature !== 'number') return request;
  const [least, most] = MINIMAX_TEMPERATURE;
  return { ...request, temperature: Math.min(Math.max(temperature, least), most) };
}
