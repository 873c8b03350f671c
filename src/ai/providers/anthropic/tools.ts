import type { ChatMessage, ChatRequest } from '../../completion/completion.js';
import { unsupported } from './errors.js';
import { isObject, type JsonObject } from '../../../lib/json.js';
import { parameterSchema } from '../shared/tool-schema.js';
import { strictSchema } from './strict-schema.js';
import { isForced } from './thinking.js';

const NO_PARAMETERS = { type: 'object', properties: {} };

/** Converts OpenAI's tools. @throws ProviderError `bad_request` for tools that are not functions. */
export function toTools(tools: unknown): JsonObject[] {
  if (tools === undefined || tools === null) return [];
  if (!Array.isArray(tools)) throw unsupported();
  return tools.map((tool: unknown) => {
    if (!isObject(tool) || tool.type !== 'function') throw unsupported();
    const { type: _type, function: declared, ...others } = tool;
    if (!isObject(declared)) throw unsupported();
    const { parameters, strict, ...rest } = declared;
    const schema = isObject(parameters)
      ? parameterSchema(parameters)
      : (parameters ?? NO_PARAMETERS);
    return {
      ...others,
      ...rest,
      input_schema: strict === true && isObject(schema) ? strictSchema(schema) : schema,
      // In OpenAI's format null means "not set".
      ...(typeof strict === 'boolean' && { strict }),
    };
  });
}

/** Declares the tools that earlier answers called. */
export function calledTools(messages: readonly ChatMessage[]): JsonObject[] {
  const calls = messages.flatMap(({ tool_calls: made }): unknown[] =>
    Array.isArray(made) ? made : [],
  );
  const names = calls.map((call) =>
    isObject(call) && isObject(call.function) ? call.function.name : undefined,
  );
  return [...new Set(names)]
    .filter((name) => typeof name === 'string')
    .map((name) => ({ name, input_schema: NO_PARAMETERS }));
}

/** Builds Anthropic's `tool_choice`, which also controls parallel tool calls. */
export function toToolChoice(
  { tool_choice: wanted, parallel_tool_calls: parallel }: ChatRequest,
  takesForced: boolean,
): JsonObject {
  const choice = !takesForced && isForced(wanted) ? { type: 'auto' } : toChoice(wanted);
  if (parallel !== false || choice?.type === 'none') return choice ? { tool_choice: choice } : {};
  return { tool_choice: { ...(choice ?? { type: 'auto' }), disable_parallel_tool_use: true } };
}

function toChoice(wanted: unknown): JsonObject | undefined {
  switch (wanted) {
    case undefined:
    case null:
      return undefined;
    case 'auto':
    case 'none':
      return { type: wanted };
    case 'required':
      return { type: 'any' };
    default:
      if (!isObject(wanted) || !isObject(wanted.function)) throw unsupported();
      return { type: 'tool', name: wanted.function.name };
  }
}
