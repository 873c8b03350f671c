import type { Endpoint } from '../endpoint.js';
import type { HandledState, Middleware } from './context.js';

export function handle(endpoint: Endpoint): Middleware<HandledState> {
  return async ({ state }) => {
    state.reply = await endpoint.handler(state.request);
  };
}
