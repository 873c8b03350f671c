import type { Endpoint } from '../endpoint.js';
import type { HandledState, Middleware } from './context.js';

/** Calls the endpoint's handler, the last of the endpoint's middlewares. */
export function handle(endpoint: Endpoint): Middleware<HandledState> {
  return async ({ state }) => {
    state.reply = await endpoint.handler(state.request);
  };
}
