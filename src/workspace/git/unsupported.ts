import { BadRequestError } from '../../lib/errors.js';

/** 400: a repository that is made in a way that is not followed. */
export class UnsupportedRepositoryError extends BadRequestError {
  constructor(why: string) {
    super(`The repository is not handled: ${why}`);
  }
}
