import type { ProviderAdapter } from '../shared/adapter.js';
import { readMessage } from './answer.js';
import { httpError } from './errors.js';
import { toMessagesRequest } from './request.js';
import { AnthropicStream } from './stream.js';

const API_VERSION = '2023-06-01';

export const anthropic: ProviderAdapter = {
  request({ baseUrl, apiKey }, request) {
    return {
      url: `${baseUrl}/messages`,
      headers: {
        'content-type': 'application/json',
        'anthropic-version': API_VERSION,
        ...(apiKey !== undefined && { 'x-api-key': apiKey }),
      },
      body: JSON.stringify(toMessagesRequest(request)),
    };
  },
  readAnswer: readMessage,
  openStream: (request) => new AnthropicStream(request),
  readError: httpError,
};
