/** Reports whether a path names a user, whom only that user and the operator find. */
export const namesUser = (path: string): boolean => path.split('/').includes(':userId');
