import { randomUUID } from 'node:crypto';
import { tryParseJson } from '../../../lib/json.js';
import { ProviderError } from '../../completion/provider-error.js';
import type { ProviderAdapter } from '../shared/adapter.js';
import { toCompletion } from '../shared/openai-format.js';
import { finishReason, readGemini, readParts, readUsed } from './answer.js';
import type { ProviderConfig } from '../../completion/provider-names.js';
import { geminiError } from './error.js';
import { readGeminiList } from './model-list.js';
import { geminiBody } from './request.js';
import { GeminiStream } from './stream.js';

/** Maximum number of models of one page of the list, Gemini's most. */
const MAX_LISTED = 1_000;

export const gemini: ProviderAdapter = {
  takesSeveralAnswers: false,
  takesImages: () => true,

  request(provider, request) {
    const method = request.stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
    return {
      url: `${provider.baseUrl}/models/${pathSegment(request.model)}:${method}`,
      headers: { 'content-type': 'application/json', ...keyHeader(provider) },
      body: geminiBody(request),
    };
  },

  readAnswer(text, request) {
    const { candidates, usageMetadata } = readGemini(text);
    const { text: content, calls } = readParts(candidates?.[0], request);
    const reason = finishReason(candidates?.[0]?.finishReason, {
      said: content !== '',
      called: calls.length > 0,
    });
    return toCompletion({
      id: `chatcmpl-${randomUUID()}`,
      model: request.model,
      content,
      calls,
      reason,
      used: readUsed(usageMetadata),
    });
  },

  openStream: (request) => new GeminiStream(request),

  listRequest: (provider) => ({
    url: `${provider.baseUrl}/models?pageSize=${MAX_LISTED}`,
    headers: keyHeader(provider),
  }),
  readList: readGeminiList,

  // If the body is truncated or not in Gemini's format, the status decides.
  readError(status, headers, text) {
    return geminiError(tryParseJson(text), status, headers);
  },
};

const keyHeader = ({ apiKey }: ProviderConfig): Readonly<Record<string, string>> =>
  apiKey === undefined ? {} : { 'x-goog-api-key': apiKey };

/** Encodes a model name. @throws ProviderError for a name that no URL can hold (broken UTF-16). */
function pathSegment(model: string): string {
  try {
    return encodeURIComponent(model);
  } catch (cause) {
    throw new ProviderError('gemini', 'unknown_model', undefined, undefined, { cause });
  }
}
