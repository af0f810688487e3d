//===- ResizeOps.cpp - resizing, sampling, boxes -------------------------------===//
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

/// The place of the attribute's value in a list of names.
int64_t oneOf(Node &node, llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> names,
              llvm::StringRef fallback) {
  llvm::StringRef value = node.stringAttr(name, fallback);
  for (auto [i, known] : llvm::enumerate(names))
    if (known == value)
      return static_cast<int64_t>(i);
  std::string all;
  for (llvm::StringRef known : names)
    all += (all.empty() ? "" : ", ") + known.str();
  (void)node.fail(name + " is '" + value + "'; supported: " + all);
  return 0;
}

/// x, region or null, scales or null, sizes or null, with what each opset says of the rest.
LogicalResult resize(Node &node, Value roi, Value scales, Value sizes, int64_t coordinates) {
  int64_t mode = oneOf(node, "mode", {"nearest", "linear", "cubic"}, "nearest");
  int64_t nearest = 2; // opset 10: floor
  bool exclude = false, antialias = false;
  int64_t policy = 0;
  double cubic = -0.75, extrapolation = 0;
  llvm::SmallVector<int64_t> axes;
  if (node.version >= 11) {
    nearest =
        oneOf(node, "nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"},
              "round_prefer_floor");
    exclude = node.boolAttr("exclude_outside", false);
    cubic = node.floatAttr("cubic_coeff_a", -0.75f);
    extrapolation = node.floatAttr("extrapolation_value", 0);
  }
  if (node.version >= 18) {
    antialias = node.boolAttr("antialias", false);
    policy = oneOf(node, "keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"},
                   "stretch");
    if (auto list = node.intsAttr("axes"))
      axes = *list;
  }
  llvm::SmallVector<int64_t> integers{
      mode, coordinates, nearest, exclude, antialias, policy, static_cast<int64_t>(axes.size())};
  llvm::append_range(integers, axes);
  node.set(0, node.libraryOne("resize", node.elementType(), {node.input(0), roi, scales, sizes},
                              integers, {cubic, extrapolation}));
  return success();
}

LogicalResult resize10(Node &node) { return resize(node, Value(), node.input(1), Value(), 4); }

LogicalResult resize11(Node &node) {
  int64_t coordinates =
      oneOf(node, "coordinate_transformation_mode",
            {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
             "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"},
            "half_pixel");
  // An input that a model leaves out may be there, and empty.
  Value scales = node.input(2), sizes = node.input(3);
  if (scales && sizes)
    if (auto type = dyn_cast<RankedTensorType>(scales.getType());
        type && type.getNumElements() == 0)
      scales = Value();
  return resize(node, node.input(1), scales, sizes, coordinates);
}

LogicalResult upsample7(Node &node) {
  auto scales = node.floatsAttr("scales");
  if (!scales)
    return node.fail("attribute 'scales' is missing");
  auto type =
      RankedTensorType::get({static_cast<int64_t>(scales->size())}, node.builder.getF32Type());
  Value list = node.constant(DenseElementsAttr::get(type, llvm::ArrayRef<float>(*scales)));
  return resize(node, Value(), list, Value(), 4);
}
LogicalResult upsample9(Node &node) { return resize(node, Value(), node.input(1), Value(), 4); }

LogicalResult gridSample(Node &node) {
  llvm::StringRef name = node.stringAttr("mode", node.version >= 20 ? "linear" : "bilinear");
  int64_t mode = name == "nearest"                        ? 0
                 : name == "linear" || name == "bilinear" ? 1
                 : name == "cubic" || name == "bicubic"   ? 2
                                                          : -1;
  if (mode < 0)
    return node.fail("mode is '" + name + "'; supported: linear, nearest, cubic");
  int64_t padding = oneOf(node, "padding_mode", {"zeros", "border", "reflection"}, "zeros");
  bool align = node.boolAttr("align_corners", false);
  Value grid = node.cast(node.input(1), node.elementType());
  node.set(0, node.libraryOne("grid_sample", node.elementType(), {node.input(0), grid},
                              {mode, padding, align}));
  return success();
}

LogicalResult affineGrid(Node &node) {
  bool align = node.boolAttr("align_corners", false);
  node.set(0, node.libraryOne("affine_grid", node.elementType(), {node.input(0), node.input(1)},
                              int64_t(align)));
  return success();
}

LogicalResult roiAlign(Node &node) {
  int64_t mode = oneOf(node, "mode", {"avg", "max"}, "avg");
  bool isHalf = node.version >= 16 && oneOf(node, "coordinate_transformation_mode",
                                            {"output_half_pixel", "half_pixel"}, "half_pixel") == 1;
  llvm::SmallVector<int64_t> integers{mode, node.intAttr("output_height", 1),
                                      node.intAttr("output_width", 1),
                                      node.intAttr("sampling_ratio", 0), isHalf};
  double scale = node.floatAttr("spatial_scale", 1);
  node.set(0, node.libraryOne("roi_align", node.elementType(),
                              {node.input(0), node.input(1), node.input(2)}, integers, scale));
  return success();
}

LogicalResult nonMaxSuppression(Node &node) {
  int64_t centers = node.intAttr("center_point_box", 0);
  node.set(0,
           node.library("non_max_suppression", node.elementType(), node.builder.getI64Type(),
                        {node.input(0), node.input(1), node.input(2), node.input(3), node.input(4)},
                        centers)[0]);
  return success();
}

LogicalResult centerCropPad(Node &node) {
  auto axes = node.intsAttr("axes");
  llvm::SmallVector<int64_t> integers{axes ? static_cast<int64_t>(axes->size()) : 0};
  if (axes)
    llvm::append_range(integers, *axes);
  node.set(0, node.libraryOne("center_crop_pad", node.elementType(), {node.input(0), node.input(1)},
                              integers));
  return success();
}

} // namespace

void llmc::onnx::addResizeOps(OperatorTable &table) {
  table.add("", "Resize", {10, 2, 2, 1, resize10});
  table.add("", "Resize", {11, 1, 4, 1, resize11});
  table.add("", "Upsample", {7, 1, 1, 1, upsample7});
  table.add("", "Upsample", {9, 2, 2, 1, upsample9});
  table.add("", "GridSample", {16, 2, 2, 1, gridSample});
  table.add("", "AffineGrid", {20, 2, 2, 1, affineGrid});
  table.add("", "RoiAlign", {10, 3, 3, 1, roiAlign});
  table.add("", "NonMaxSuppression", {10, 2, 5, 1, nonMaxSuppression});
  table.add("", "CenterCropPad", {18, 2, 2, 1, centerCropPad});
}
