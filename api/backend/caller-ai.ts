import type { Ai, CallerAi } from '../../src/ai/routing/ai.js';
import { OwnKeys } from '../../src/ai/own-keys/own-keys.js';
import type { CallerOf } from '../auth/authentication.js';
import type { optionalBearer } from '../auth/optional-bearer.js';

/** Returns what a caller of the AI API may use: an API key opens the own keys of its owner. */
export const callerAi = (
  ai: Pick<Ai, 'forCaller' | 'router'>,
  caller: CallerOf<typeof optionalBearer>,
): CallerAi =>
  caller.kind === 'api-key' ? ai.forCaller(caller) : { ownKeys: OwnKeys.none, router: ai.router };
