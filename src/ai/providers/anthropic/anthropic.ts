import { isObject } from '../../../lib/json.js';
import type { ProviderAdapter } from '../shared/adapter.js';
import { readMessage } from './answer.js';
import { httpError } from './errors.js';
import { toMessagesRequest } from './request.js';
import { AnthropicStream } from './stream.js';

const API_VERSION = '2023-06-01';
/** Allows `thinking.block_binding`. */
const BINDING_BETA = 'thinking-binding-controls-2026-08-01';

export const anthropic: ProviderAdapter = {
  takesSeveralAnswers: false,
  takesImages: () => true,
  request({ baseUrl, apiKey }, request) {
    const body = toMessagesRequest(request);
    const bindsThinking = isObject(body.thinking) && 'block_binding' in body.thinking;
    return {
      url: `${baseUrl}/messages`,
      headers: {
        'content-type': 'application/json',
        'anthropic-version': API_VERSION,
        ...(bindsThinking && { 'anthropic-beta': BINDING_BETA }),
        ...(apiKey !== undefined && { 'x-api-key': apiKey }),
      },
      body: JSON.stringify(body),
    };
  },
  readAnswer: readMessage,
  openStream: (request) => new AnthropicStream(request),
  readError: httpError,
};
