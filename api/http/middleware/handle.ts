import type { Endpoint } from '../endpoint.js';
import type { CallMiddleware, HandledState } from './context.js';

export function handle(endpoint: Endpoint): CallMiddleware<HandledState> {
  return async ({ state }) => {
    state.reply = await endpoint.handler(state.request);
  };
}
