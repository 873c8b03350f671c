import type { Logger } from 'pino';
import { NotFoundError } from '../../../src/lib/errors.js';
import type { Answer } from '../answer.js';
import { loggedErrorAnswer } from '../error-answer.js';
import { errorJson } from '../presenter.js';
import { sendAnswer } from '../send-answer.js';
import type { Server } from '../server.js';
import type { Middleware } from './context.js';

/** Sends the answer of the middlewares after it, or the answer to their error. */
export function respond(options: { readonly log: Logger; readonly server: Server }): Middleware {
  return async (ctx, next) => {
    const { state } = ctx;
    let answer: Answer;
    try {
      await next();
      if (state.answer === undefined) throw new NotFoundError();
      answer = state.answer;
    } catch (error) {
      answer = errorJson(state.errorForm, loggedErrorAnswer(error, state.requestId, options.log));
    }
    sendAnswer(ctx, answer, options.server);
  };
}
