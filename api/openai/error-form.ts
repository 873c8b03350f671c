import * as z from 'zod';
import { MODEL_NOT_FOUND } from '../../src/ai/routing/no-answer-error.js';
import type { ErrorForm } from '../http/endpoint.js';

/** Returns OpenAI's error type for a status, because clients distinguish errors by it. */
function typeOf(status: number): string {
  if (status >= 500) return 'server_error';
  switch (status) {
    case 401:
      return 'authentication_error';
    case 402:
      return 'insufficient_quota';
    case 403:
      return 'permission_error';
    case 429:
      return 'rate_limit_error';
    default:
      return 'invalid_request_error';
  }
}

/** Errors in OpenAI's format: `error` is an object and not a text. */
export const OPENAI_ERRORS: ErrorForm = {
  name: 'OpenAiError',
  schema: z
    .object({
      error: z.looseObject({
        message: z.string(),
        type: z.string(),
        param: z.string().nullable(),
        code: z.string().nullable(),
      }),
    })
    .meta({ id: 'OpenAiError' }),
  of({ status, body: { error, code, setup, ...facts } }) {
    // Clients of this form show their users nothing but the message.
    const message = typeof setup === 'string' ? `${String(error)}. ${setup}` : error;
    // The endpoints of this form have nothing else that can be missing.
    const usual = status === 404 ? MODEL_NOT_FOUND : null;
    return { error: { message, type: typeOf(status), param: null, code: code ?? usual, ...facts } };
  },
};
