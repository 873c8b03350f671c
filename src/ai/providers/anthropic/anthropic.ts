import { isObject } from '../../../lib/json.js';
import type { ProviderAdapter } from '../shared/adapter.js';
import { readMessage } from './answer.js';
import type { ProviderConfig } from '../../completion/provider-names.js';
import { httpError } from './errors.js';
import { readAnthropicList } from './model-list.js';
import { toMessagesRequest } from './request.js';
import { AnthropicStream } from './stream.js';

const API_VERSION = '2023-06-01';
/** Allows `thinking.block_binding`. */
const BINDING_BETA = 'thinking-binding-controls-2026-08-01';

/** Maximum number of models of one page of the list, Anthropic's most. */
const MAX_LISTED = 1_000;

export const anthropic: ProviderAdapter = {
  takesSeveralAnswers: false,
  takesImages: () => true,
  request(provider, request) {
    const body = toMessagesRequest(request);
    const bindsThinking = isObject(body.thinking) && 'block_binding' in body.thinking;
    return {
      url: `${provider.baseUrl}/messages`,
      headers: {
        'content-type': 'application/json',
        ...(bindsThinking && { 'anthropic-beta': BINDING_BETA }),
        ...ownHeaders(provider),
      },
      body: JSON.stringify(body),
    };
  },
  readAnswer: readMessage,
  openStream: (request) => new AnthropicStream(request),
  readError: httpError,
  listRequest: (provider) => ({
    url: `${provider.baseUrl}/models?limit=${MAX_LISTED}`,
    headers: ownHeaders(provider),
  }),
  readList: readAnthropicList,
};

function ownHeaders({ apiKey }: ProviderConfig): Readonly<Record<string, string>> {
  return {
    'anthropic-version': API_VERSION,
    ...(apiKey !== undefined && { 'x-api-key': apiKey }),
  };
}
