import type { Logger } from 'pino';
import { ServiceError } from '../../../src/lib/errors.js';
import type { Answer } from '../answer.js';
import { loggedErrorAnswer } from '../error-answer.js';
import { CLIENT_LEFT, errorJson, jsonAnswer, type Presenter } from '../presenter.js';
import type { CallMiddleware, HandledState } from './context.js';

/** Makes and checks the answer of what the handler returns or throws; never throws itself. */
export function present(presenter: Presenter, log: Logger): CallMiddleware<HandledState> {
  return async (ctx, next) => {
    const { state } = ctx;
    try {
      await next();
      state.answer = presenter.present(state.reply);
    } catch (error) {
      state.answer = errorAnswerOf(error, state);
    }
  };

  function errorAnswerOf(error: unknown, { errorForm, request }: HandledState): Answer {
    const { requestId, signal } = request;
    // A handler that its client's leaving has aborted has not failed.
    if (signal.aborted && error === signal.reason) return jsonAnswer(CLIENT_LEFT, {});
    const answer = loggedErrorAnswer(error, requestId, log);
    if (!(error instanceof ServiceError)) return errorJson(errorForm, answer);
    try {
      return presenter.presentError(answer);
    } catch (undeclared) {
      return errorJson(errorForm, loggedErrorAnswer(undeclared, requestId, log));
    }
  }
}
