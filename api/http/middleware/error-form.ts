import type { ErrorForm } from '../endpoint.js';
import type { Middleware } from './context.js';

/** Sets the form in which the endpoint answers errors, for every middleware after this one. */
export function setErrorForm(form: ErrorForm): Middleware {
  return (ctx, next) => {
    ctx.state.errorForm = form;
    return next();
  };
}
