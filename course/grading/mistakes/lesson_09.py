"""Mistakes of lesson 09: coordinates on a mesh, its groups, the order of axes, clipping over shards."""

from course.grading.mistakes.mistake import Mistake

# --- coordinates, and back --------------------------------------------------------------------------------------------

MESH_TENSOR_SLOWEST = Mistake(
    "the tensor axis is the slowest",
    "Every rank has a place of its own, and with all sizes equal it looks just as tidy.",
    "Ranks 0 and 1 are neighbours in one machine. Along which axis should they differ?",
)
MESH_AXES_SWAPPED = Mistake(
    "axes swapped",
    "Every rank has a place of its own.",
    "pp is the slowest axis, then comes dp, and tp is the fastest. Write down ranks 0 to 12 of your mesh: which "
    "coordinate changes first, which last?",
)
MESH_FROM_ONE = Mistake(
    "counts from 1",
    "One starts to count at one.",
    "Rank 0 sits at 0 on every axis.",
)
MESH_KEYS_MIXED = Mistake(
    "the right numbers under the wrong names",
    "All three numbers are there.",
    "Go through one rank by hand: which of your expressions changes with every rank, and which the most seldom?",
)
MESH_WRONG_DIVISOR = Mistake(
    "the wrong divisor",
    "Where two axes are equally long, it makes no difference.",
    "An axis moves by one after as many ranks as all faster axes have places together. Which sizes are those?",
)
MESH_NO_MODULO = Mistake(
    "the modulo is missing",
    "In the first block it is right, since there the division alone stays inside.",
    "An index along an axis ends at its size less one, then begins at 0 again. Which of yours goes on?",
)
MESH_ONLY_MODULO = Mistake(
    "the division is missing",
    "Each index stays inside its axis.",
    "A slower axis stands still while the faster ones go round. What has to be taken out of the rank before the "
    "modulo?",
)
MESH_WRONG_MODULO = Mistake(
    "the modulo of another axis' size",
    "Where two axes are equally long, it makes no difference.",
    "An axis with n places wraps after n. Which size stands behind your `%`, and which axis is it for?",
)
MESH_DP_FOR_TP = Mistake(
    "dp's size where tp's belongs",
    "With 2 x 2 both are the same.",
    "The fastest axis is tp, so its size is the first that the rank is divided by. Which one did you take?",
)
RANK_OWN_SIZE = Mistake(
    "each index times the size of its own axis",
    "With equal sizes two of the three come out right.",
    "How many ranks further does one step along an axis lead? As many as the faster axes have places.",
)
RANK_SHORT_STRIDE = Mistake(
    "a step along pp that is too short",
    "dp and tp are right, and with one stage all ranks are.",
    "One stage holds a whole block of ranks: all of dp and all of tp. How many are those?",
)
RANK_SIZES_SWAPPED = Mistake(
    "the wrong size",
    "Where two axes are equally long, it makes no difference.",
    "Start with pp: to make room for dp, multiply by how many places dp has. Then the same for tp.",
)
RANK_SUM_OF_INDICES = Mistake(
    "the indices are only added",
    "Rank 0 is right, and so are all ranks of a mesh with one axis.",
    "Three indices are the digits of one number. What is each digit worth?",
)
RANK_KEY_ORDER = Mistake(
    "trusts the order of the keys",
    "`rank_to_coordinates` always writes pp first.",
    "Somebody else may write tp first. Ask for each axis by its name.",
)
RANK_USED_UP = Mistake(
    "takes the coordinates apart",
    "The rank is right.",
    "The caller still needs the dictionary. Read from it, and leave it as it is.",
)

# --- groups -----------------------------------------------------------------------------------------------------------

GROUPS_OF_EQUALS = Mistake(
    "groups of ranks that agree on the axis",
    "The axis' coordinate decides who belongs together.",
    "Who talks along an axis differs in it, and in nothing else. Which coordinates must be equal?",
)
GROUPS_NEIGHBOURS = Mistake(
    "neighbours, whatever the axis",
    "For tp, the fastest axis, it is right.",
    "Along dp the next rank of a group is tp ranks away. How far is it along pp?",
)
GROUPS_OTHER_ORDER = Mistake(
    "groups of another mesh",
    "Every rank is in one group, and the groups have the right size.",
    "pp is the slowest axis, then dp, then tp. For each group, write down the coordinates of its ranks.",
)
GROUPS_FIRST_ONLY = Mistake(
    "one group, not all",
    "Rank 0's group is right.",
    "Every rank is in one group along each axis. How many groups are there?",
)
GROUPS_UNSORTED = Mistake(
    "right groups in another order",
    "Each set of ranks is right.",
    "Each list goes from the lowest rank to the highest, and the lists by their first rank: all ranks that make a "
    "group have to name it in the same way.",
)
GROUPS_SINGLES_LEFT_OUT = Mistake(
    "groups of one are left out",
    "Nobody in them has anything to send.",
    "A rank looks for its group on every axis. Where the axis has one place, that is the rank alone.",
)
GROUPS_OF_INDICES = Mistake(
    "indices along the axis, not ranks",
    "Each list has one entry for each place on the axis.",
    "`new_group` wants global ranks. Which rank sits at that index?",
)
GROUPS_REPEATED = Mistake(
    "each group once for each of its members",
    "Every rank has its group.",
    "All members of a group mean the same one. How often should it be in the list?",
)
GROUPS_FLAT = Mistake(
    "one flat list",
    "All ranks are there, group after group.",
    "Where does a group end? Give each one a list of its own.",
)

# --- the order of axes ------------------------------------------------------------------------------------------------

PLACE_SLOWEST_FIRST = Mistake(
    "slowest axis first",
    "A mesh is written slowest first, so one returns it that way.",
    "The order is asked for the other way round: the axis along which neighbouring ranks differ stands first.",
)
PLACE_BUSIEST_FIRST = Mistake(
    "the axis that sends most goes first",
    "That is the rule of thumb, and on most machines it is right.",
    "A large axis may fill a node so badly that much crosses anyway, and one of size 1 sends nothing. Count what "
    "crosses for each order.",
)
PLACE_TOTALS_SORTED = Mistake(
    "sorted by bytes times size",
    "Larger axes make more messages.",
    "Sorting looks at axes one by one, but whether a message crosses depends on all the faster ones. Count what "
    "crosses for each order.",
)
PLACE_BY_SIZE = Mistake(
    "sorted by size alone",
    "A small axis fits into a node.",
    "Look at what each axis sends: a small axis that sends next to nothing wastes the best place.",
)
PLACE_FIXED = Mistake(
    "the same order for all traffic",
    "tp inside, pp outside is what most runs do.",
    "Give one axis a thousand times the bytes: does your answer change?",
)
PLACE_MOST_ACROSS = Mistake(
    "the order for which most bytes cross",
    "All orders are tried, and the bytes counted.",
    "Is it `max` or `min` that is asked for?",
)
PLACE_NO_WRAP = Mistake(
    "the last rank of a ring sends nothing",
    "All the others do, to the next one.",
    "In a ring the last sends to the first, and that is the longest way. Does it leave the node?",
)
PLACE_FIRST_RING = Mistake(
    "counts one ring of each axis",
    "All rings of an axis send alike.",
    "They send as much, but not from the same nodes: one ring may lie inside a node where the next one does not. "
    "Count over all ranks.",
)
PLACE_NODE_IGNORED = Mistake(
    "the size of a node makes no difference",
    "The strides of the axes are right.",
    "Rank r sits on node r // per_node. Where does `per_node` come in?",
)
PLACE_UNWEIGHTED = Mistake(
    "counts messages, not bytes",
    "What crosses and what does not is right.",
    "A message along one axis may be a thousand times as large as one along another. What is each worth?",
)
PLACE_NOT_THE_NODE = Mistake(
    "the place on a node, not the node",
    "`per_node` is in it, and neighbours look different.",
    "With 4 ranks a node, ranks 0 to 3 sit together. Which operation gives these four the same number?",
)
PLACE_OUT_OF_RING = Mistake(
    "the last rank of a ring sends to another ring",
    "Every rank sends one stride further, and most of these messages are right.",
    "A ring closes: behind the last index along an axis comes the first, and no other index changes. On an axis of "
    "size 1 that is the rank itself.",
)

# --- clipping ---------------------------------------------------------------------------------------------------------

CLIP_LOCAL_NORM = Mistake(
    "each rank takes its own norm",
    "It is what `clip_grad_norm_` does, and every rank ends below `max_norm`.",
    "Each rank then scales by a factor of its own, and weights that should stay equal drift apart. What do the other "
    "ranks hold?",
)
CLIP_NORMS_ADDED = Mistake(
    "norms are added, not squares",
    "Every rank's share is in the sum.",
    "Norms do not add up: 3 and 4 make 5. What does add up, before the root?",
)
CLIP_COUNTED_OFTEN = Mistake(
    "what every rank holds is counted once a rank",
    "All squares are summed over all ranks. `all_reduce` with `group=None` does it too: there None means all ranks.",
    "A weight that all ranks hold is one weight of the model. How often is it in your sum?",
)
CLIP_WHOLE_LEFT_OUT = Mistake(
    "what every rank holds is not counted",
    "It is not sharded, so nothing has to be summed.",
    "It belongs to the same gradient. Add its squares once, on every rank.",
)
CLIP_NO_ROOT = Mistake(
    "the square of the norm",
    "All squares are there, each once.",
    "A norm is the root of the sum of squares. Take it after the last sum, and once.",
)
CLIP_GROUP_IGNORED = Mistake(
    "summed over all ranks, not over the group",
    "With one group of all ranks it is right.",
    "Other groups hold copies of the same shards. Over which ranks is this entry split?",
)
CLIP_AVERAGED = Mistake(
    "averaged over the ranks",
    "Gradients of copies are averaged, so dividing looks familiar.",
    "Shards are parts of one whole. Of parts one takes the sum.",
)
CLIP_ENTRIES_APART = Mistake(
    "each entry is clipped by itself",
    "Each comes out with a norm of at most `max_norm`.",
    "The direction of the whole gradient must stay. One norm over all entries, and one factor for all.",
)
CLIP_NORM_AFTER = Mistake(
    "the norm after clipping came back",
    "The gradients are right.",
    "It is never above `max_norm`, so nobody sees a step that blows up. Return what the norm was before.",
)
CLIP_SCALES_UP = Mistake(
    "small gradients are scaled up",
    "Afterwards the norm is `max_norm`, as it is where it was larger.",
    "Clipping is a ceiling. What should happen below it?",
)
CLIP_TO_ONE = Mistake(
    "scaled to norm 1",
    "`max_norm` is often 1.",
    "Where the norm is above `max_norm`, it is to become `max_norm`. Is that in your factor?",
)
CLIP_NOT_SCALED = Mistake(
    "the gradients stay as they were",
    "The norm is right.",
    "`g = g * factor` gives a new tensor and leaves the parameter's alone. Which tensor does the optimizer read?",
)
CLIP_WHOLE_NOT_SCALED = Mistake(
    "only a part of the gradients is scaled",
    "The norm is right, and the entries that were scaled are too.",
    "One factor for all entries, those with a group and those without. Which ones does your loop reach?",
)
CLIP_BY_VALUE = Mistake(
    "each number is clipped by itself",
    "No number is above `max_norm` afterwards.",
    "That bends the gradient into another direction. Multiply all numbers by one factor.",
)
CLIP_EMPTY_STAYS_AWAY = Mistake(
    "a rank without gradients stays away",
    "It has nothing to add.",
    "The others wait for it in the sum. What can it bring that changes nothing?",
)
CLIP_GRADIENTS_SENT = Mistake(
    "gradients are sent",
    "With all of them in one place the norm is easy.",
    "The others need nothing of this rank but one number. Which?",
)
CLIP_CALL_EACH = Mistake(
    "a call for each parameter",
    "Each parameter's squares are summed over its ranks.",
    "Add up the squares of an entry first, then send one number for all of it.",
)
