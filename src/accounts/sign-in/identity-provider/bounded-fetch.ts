import { Readable } from 'node:stream';
import type { CustomFetch } from 'openid-client';
import { readTextUpTo } from '../../../lib/read-beginning.js';

/** Maximum bytes of a provider's answer. */
const MAX_ANSWER_BYTES = 256 * 1024;

/** Seconds that a provider may take for each answer. */
export const PROVIDER_TIMEOUT_S = 10;

const WITHOUT_BODY = [204, 205, 304];

/** A fetch for providers: follows no redirect and limits the answer's length. */
export const boundedFetch: CustomFetch = async (url, options) => {
  const response = await fetch(url, { ...options, redirect: 'manual' });
  const { headers, status } = response;
  const text = response.body
    ? await readTextUpTo(Readable.fromWeb(response.body), MAX_ANSWER_BYTES)
    : '';
  return new Response(WITHOUT_BODY.includes(status) ? null : text, { headers, status });
};
