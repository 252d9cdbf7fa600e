// Which pages come first in the search: those whose title has the words, questions before manuals, manuals before lists of names and tables of results.
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,

  // [name of the page, its title, anchor, description, score, file, kind]
  score: (result) => {
    const [page, title, , , score, , kind] = result;
    const words = (new URLSearchParams(window.location.search).get("q") || "").toLowerCase().match(/\w{3,}/g) || [];
    const exactName = kind === "object" && score >= Scorer.objNameMatch + Scorer.objPrio[0];
    const inTitle = words.filter((word) => title.toLowerCase().includes(word)).length / Math.max(words.length, 1);
    const rooms = [["docs/issues_solved/", 4], ["docs/interface/", 0], ["docs/", 3], ["README", 1], ["examples/", 1]];
    const room = (rooms.find(([start]) => page.startsWith(start)) || ["", -2])[1];
    return (exactName ? 100 : 0) + (kind === "object" ? 0 : 40 * inTitle) + room + score;
  },
};
