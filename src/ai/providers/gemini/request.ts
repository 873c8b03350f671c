import * as z from 'zod';
import type { ChatRequest } from '../../completion/completion.js';
import { badRequest, parsed } from './input.js';
import { toJson } from './json.js';
import { toContents } from './messages.js';
import { geminiName } from './names.js';
import { geminiSchema } from './schema.js';
import { isObject } from '../../../lib/json.js';
import { parameterSchema } from '../shared/tool-schema.js';

const functionTools = z
  .array(
    z.object({
      type: z.literal('function'),
      function: z.object({
        name: z.string(),
        description: z.string().nullish(),
        parameters: z.unknown().optional(),
      }),
    }),
  )
  .nullish();

const toolChoice = z
  .union([
    z.enum(['auto', 'none', 'required']),
    z.object({ type: z.literal('function'), function: z.object({ name: z.string() }) }),
  ])
  .nullish();

const responseFormat = z
  .discriminatedUnion('type', [
    z.object({ type: z.literal('text') }),
    z.object({ type: z.literal('json_object') }),
    z.object({
      type: z.literal('json_schema'),
      json_schema: z.object({ schema: z.unknown().optional() }),
    }),
  ])
  .nullish();

/** Models since 2.5 refuse penalties. */
const TAKES_PENALTIES = /^gemini-(?:1|2\.0)/;

const generationConfig = z.record(z.string(), z.unknown()).nullish();

/**
 * Builds a request with Gemini's own fields, without those that only OpenAI supports.
 * @throws ProviderError `bad_request` for a request that Gemini cannot express.
 */
export function geminiBody(request: ChatRequest): string {
  const tools = functionDeclarations(request.tools);
  const body = {
    ...toContents(request),
    tools: tools && [{ functionDeclarations: tools }],
    toolConfig: toolConfig(request.tool_choice, tools !== undefined),
    generationConfig: {
      ...parsed(generationConfig, request.generationConfig),
      // Only one candidate is read, so only one is requested.
      candidateCount: undefined,
      ...given({
        maxOutputTokens: request.max_completion_tokens ?? request.max_tokens,
        temperature: request.temperature,
        topP: request.top_p,
        stopSequences: typeof request.stop === 'string' ? [request.stop] : request.stop,
        seed: typeof request.seed === 'number' ? request.seed | 0 : undefined,
        ...(TAKES_PENALTIES.test(request.model) && {
          presencePenalty: request.presence_penalty,
          frequencyPenalty: request.frequency_penalty,
        }),
        ...(takesFormat(request) && responseFields(request.response_format)),
      }),
    },
    safetySettings: request.safetySettings,
  };
  return toJson(body, 'bad_request');
}

/** Drops undefined fields, so that they do not override those merged before. */
function given(fields: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null),
  );
}

function functionDeclarations(tools: unknown): readonly object[] | undefined {
  const declared = parsed(functionTools, tools);
  if (!declared?.length) return undefined;
  return declared.map(({ function: { name, description, parameters } }) => ({
    name: geminiName(name),
    description: description ?? undefined,
    // This field allows any JSON Schema; `parameters` allows only Google's subset.
    parametersJsonSchema: isObject(parameters)
      ? geminiSchema(parameterSchema(parameters))
      : (parameters ?? undefined),
  }));
}

function toolConfig(choice: unknown, hasTools: boolean): object | undefined {
  const chosen = parsed(toolChoice, choice) ?? undefined;
  if (chosen === undefined) return undefined;
  if (!hasTools) {
    // Gemini refuses a tool choice without tools.
    if (chosen === 'auto' || chosen === 'none') return undefined;
    throw badRequest();
  }
  if (typeof chosen === 'object') {
    const name = geminiName(chosen.function.name);
    return { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [name] } };
  }
  const mode = { auto: 'AUTO', none: 'NONE', required: 'ANY' }[chosen];
  return { functionCallingConfig: { mode } };
}

/** Reports whether the answer may be JSON: beside tools only since 3, and never beside a forced call. */
function takesFormat({ model, tools, tool_choice: choice }: ChatRequest): boolean {
  if (!Array.isArray(tools) || tools.length === 0) return true;
  return !/^gemini-[12]\b/.test(model) && choice !== 'required' && !isObject(choice);
}

function responseFields(format: unknown): Readonly<Record<string, unknown>> {
  const requested = parsed(responseFormat, format);
  if (!requested || requested.type === 'text') return {};
  const schema = requested.type === 'json_schema' ? requested.json_schema.schema : undefined;
  return {
    responseMimeType: 'application/json',
    responseJsonSchema: isObject(schema) ? geminiSchema(schema) : schema,
  };
}
